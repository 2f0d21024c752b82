// The memory layout that a program compiled against Debian's ev.h expects. Sizes and offsets:
// measured with the installed header on x86-64.
#include <cstddef>

#include "compat/libev/ev_api.h"

namespace {

static_assert(sizeof(ev_watcher) == 32 && sizeof(ev_watcher_list) == 40);
static_assert(sizeof(ev_watcher_time) == 40);
static_assert(sizeof(ev_io) == 48 && sizeof(ev_timer) == 48 && sizeof(ev_periodic) == 64);
static_assert(sizeof(ev_signal) == 48 && sizeof(ev_child) == 56 && sizeof(ev_stat) == 400);
static_assert(sizeof(ev_idle) == 32 && sizeof(ev_prepare) == 32 && sizeof(ev_check) == 32);
static_assert(sizeof(ev_fork) == 32 && sizeof(ev_cleanup) == 32 && sizeof(ev_async) == 40);
static_assert(sizeof(ev_embed) == 360 && sizeof(ev_any_watcher) == 400);

static_assert(offsetof(ev_watcher, data) == 16 && offsetof(ev_watcher, cb) == 24);
static_assert(offsetof(ev_periodic, at) == 32 && offsetof(ev_periodic, offset) == 40);
static_assert(offsetof(ev_periodic, interval) == 48 && offsetof(ev_periodic, reschedule_cb) == 56);
static_assert(offsetof(ev_signal, signum) == 40);
static_assert(offsetof(ev_child, flags) == 40 && offsetof(ev_child, pid) == 44);
static_assert(offsetof(ev_child, rpid) == 48 && offsetof(ev_child, rstatus) == 52);
static_assert(offsetof(ev_stat, timer) == 40 && offsetof(ev_stat, interval) == 88);
static_assert(offsetof(ev_stat, path) == 96 && offsetof(ev_stat, prev) == 104);
static_assert(offsetof(ev_stat, attr) == 248 && offsetof(ev_stat, wd) == 392);
static_assert(offsetof(ev_embed, other) == 32 && offsetof(ev_embed, io) == 40);
static_assert(offsetof(ev_embed, prepare) == 88 && offsetof(ev_embed, fork) == 296);
static_assert(offsetof(ev_async, sent) == 32);

}  // namespace
