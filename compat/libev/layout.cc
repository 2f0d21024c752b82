// What a program compiled against Debian's ev.h has in memory, and what of it core may take for a
// node of its own. Sizes and offsets: measured with the installed header on x86-64.
#include <cstddef>

#include "compat/libev/ev_api.h"
#include "spate/node.h"

namespace {

using spate::FdNode;
using spate::Node;
using spate::TimerNode;

static_assert(EV_MINPRI == spate::kPriorityMin && EV_MAXPRI == spate::kPriorityMax);
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

// ---- the nodes

static_assert(offsetof(ev_watcher, active) == offsetof(Node, active));
static_assert(offsetof(ev_watcher, pending) == offsetof(Node, pending));
static_assert(offsetof(ev_watcher, priority) == offsetof(Node, priority));
static_assert(offsetof(ev_watcher, data) == offsetof(Node, context));
static_assert(offsetof(ev_watcher, cb) == offsetof(Node, callback));
static_assert(sizeof(ev_io) == sizeof(FdNode) && offsetof(ev_io, next) == offsetof(FdNode, next));
static_assert(offsetof(ev_io, fd) == offsetof(FdNode, fd));
static_assert(offsetof(ev_io, events) == offsetof(FdNode, events));
static_assert(sizeof(ev_timer) == sizeof(TimerNode));
static_assert(offsetof(ev_timer, at) == offsetof(TimerNode, deadline));
static_assert(sizeof(ev_timer::at) == sizeof(TimerNode::deadline));

static_assert(EV_READ == static_cast<int>(spate::Events::read));
static_assert(EV_WRITE == static_cast<int>(spate::Events::write));
static_assert(EV__IOFDSET == spate::kFdIsNew);

}  // namespace
