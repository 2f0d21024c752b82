// Creating and destroying loops, and the functions that query or set them.
//
// Semantics: ev(3) "FUNCTIONS CONTROLLING EVENT LOOPS".
#include "compat/libev/loop.h"

#include <unistd.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "compat/libev/children.h"
#include "compat/libev/signals.h"
#include "spate/export.h"

extern "C" {
// Programs read the variable directly (EV_DEFAULT_UC), and it may be copied into their own memory.
SPATE_EXPORT struct ev_loop* ev_default_loop_ptr = nullptr;
}

namespace {

struct BackendName {
  unsigned int bit;
  std::string_view name;
};
// In the order in which they are tried.
constexpr BackendName kBackends[] = {{EVBACKEND_IOURING, "io_uring"},
                                     {EVBACKEND_EPOLL, "epoll"},
                                     {EVBACKEND_POLL, "poll"},
                                     {EVBACKEND_SELECT, "select"}};

// The environment overrides all flags except EVFLAG_FORKCHECK.
unsigned int effective_flags(unsigned int flags) {
  const char* environment = (flags & EVFLAG_NOENV) == 0 ? secure_getenv("LIBEV_FLAGS") : nullptr;
  if (environment == nullptr) return flags;
  const auto named = static_cast<unsigned int>(std::atoi(environment));
  return (named & ~EVFLAG_FORKCHECK) | (flags & EVFLAG_FORKCHECK);
}

// A program may destroy the default loop, make another, and use its old pointer.
alignas(struct ev_loop) unsigned char default_storage[sizeof(struct ev_loop)];

void dispose_of(struct ev_loop* loop, bool is_default) {
  if (!is_default) {
    delete loop;
  } else {
    loop->~ev_loop();
  }
}

void postpone_timers(spate::Loop& core, std::int64_t nanos) {
  using Timers = std::vector<spate::TimerNode*>;
  Timers timers;
  bool (*note)(void*, spate::TimerNode&) = [](void* list, spate::TimerNode& timer) {
    static_cast<Timers*>(list)->push_back(&timer);
    return true;
  };
  core.for_each(note, &timers);
  for (spate::TimerNode* timer : timers) core.restart(*timer, timer->deadline + nanos);
}

struct ev_loop* make_loop(unsigned int flags, bool is_default) {
  struct ev_loop* loop;
  if (is_default) {
    loop = new (default_storage) struct ev_loop;
  } else {
    loop = new (std::nothrow) struct ev_loop;
  }
  if (loop == nullptr || loop->open(effective_flags(flags))) return loop;
  dispose_of(loop, is_default);
  return nullptr;
}

}  // namespace

bool ev_loop::open(unsigned int open_flags) {
  flags = open_flags;
  unsigned int wanted = flags & EVBACKEND_MASK;
  if (wanted == 0) wanted = ev_recommended_backends();
  for (const BackendName& candidate : kBackends) {
    if ((wanted & candidate.bit) == 0) continue;
    spate::LayerOptions options;
    options.loop.backend = candidate.name;
    options.dispatcher = this;
    options.guarded = true;
    options.orphans = true;
    spate::Result<std::unique_ptr<spate::Loop>> created = spate::NodeLoop::create(options);
    if (!created || (*created)->backend_info().name != candidate.name) continue;
    core = std::move(*created);
    backend = candidate.bit;
    read_wall(false);
    if ((flags & EVFLAG_FORKCHECK) != 0) known_pid = getpid();
    return true;
  }
  return false;
}

void ev_loop::destroy() {
  if (!cleanups.empty()) call_all(cleanups, EV_CLEANUP);
  const bool is_default = this == ev_default_loop_ptr;
  if (is_default) {
    spate::libev::stop_reaping(*this);
    ev_default_loop_ptr = nullptr;
  }
  spate::libev::forget_signals_of(*this);
  periodics.close();
  dispose_of(this, is_default);
}

bool ev_loop::begin(ev_watcher& watcher) {
  if (watcher.active != 0) return false;
  spate::libev::clamp_priority(watcher);
  core->ref();
  return true;
}

bool ev_loop::end(ev_watcher& watcher) {
  pending.clear(watcher);
  if (watcher.active == 0) return false;
  core->unref();
  return true;
}

struct ev_loop* ev_default_loop(unsigned int flags) noexcept {
  if (ev_default_loop_ptr == nullptr) {
    ev_default_loop_ptr = make_loop(flags, true);
    if (ev_default_loop_ptr != nullptr) spate::libev::start_reaping(*ev_default_loop_ptr);
  }
  return ev_default_loop_ptr;
}

struct ev_loop* ev_loop_new(unsigned int flags) noexcept { return make_loop(flags, false); }

void ev_loop_destroy(struct ev_loop* loop) {
  if (loop != nullptr) loop->destroy();
}

void ev_loop_fork(struct ev_loop* loop) noexcept { loop->fork_due = true; }

void ev_ref(struct ev_loop* loop) noexcept { loop->core->ref(); }
void ev_unref(struct ev_loop* loop) noexcept { loop->core->unref(); }

unsigned int ev_backend(struct ev_loop* loop) noexcept { return loop->backend; }
unsigned int ev_iteration(struct ev_loop* loop) noexcept { return loop->iteration; }
unsigned int ev_depth(struct ev_loop* loop) noexcept { return loop->depth; }

void ev_set_userdata(struct ev_loop* loop, void* data) noexcept { loop->userdata = data; }
void* ev_userdata(struct ev_loop* loop) noexcept { return loop->userdata; }

ev_tstamp ev_now(struct ev_loop* loop) noexcept { return loop->wall_now(); }

void ev_now_update(struct ev_loop* loop) noexcept {
  loop->core->update_now();
  loop->update_wall();
}

void ev_suspend(struct ev_loop* loop) noexcept { ev_now_update(loop); }

// The time since the loop's last reading of the clock does not count for timers.
void ev_resume(struct ev_loop* loop) noexcept {
  const std::int64_t before = loop->core->now().count();
  loop->core->update_now();
  postpone_timers(*loop->core, loop->core->now().count() - before);
  loop->read_wall(true);
}

void ev_set_io_collect_interval(struct ev_loop* loop, ev_tstamp interval) noexcept {
  loop->io_interval = interval;
}
void ev_set_timeout_collect_interval(struct ev_loop* loop, ev_tstamp interval) noexcept {
  loop->timeout_interval = interval;
}
