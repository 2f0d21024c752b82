#include "compat/libevent/event/base.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "compat/libevent/debug_mode.h"
#include "compat/libevent/event/once.h"
#include "compat/libevent/log.h"

using namespace spate::libevent;

constinit event_base* spate::libevent::current_base = nullptr;

// ---- making and freeing one

event_base::event_base(const Method& method, const event_config* config)
    : method_(method), flags_(flags_from(config)), limits_(limits_from(config)) {
  int supported = EV_READ | EV_WRITE;
  if ((method.features & EV_FEATURE_ET) != 0) supported |= EV_ET;
  if ((method.features & EV_FEATURE_EARLY_CLOSE) != 0) supported |= EV_CLOSED;
  supported_ = static_cast<short>(supported);
  watches_at_once_ = knows_edges() && (flags_ & EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) == 0;
  signals_due_.ev_evcallback.evcb_flags = EVLIST_INIT | EVLIST_INTERNAL;
  may_cache_time_ = (flags_ & EVENT_BASE_FLAG_NO_CACHE_TIME) == 0;
}

bool event_base::open() {
  if (!active_.set_priorities(1)) return false;
  spate::Result<std::unique_ptr<spate::Loop>> loop = spate::NodeLoop::create(
      {.loop = {.backend = method_.name}, .dispatcher = this, .guarded = true});
  if (!loop) return false;
  loop_ = std::move(*loop);
  loop_->ref();  // The base decides whether there is anything to wait for, not the loop.
  signals_.set_loop(*loop_);
  if (!has_locks() || (flags_ & EVENT_BASE_FLAG_NOLOCK) != 0) return true;
  lock_ = make_lock();
  if (lock_ == nullptr) return false;
  is_notifiable_ = true;
  const evthread_condition_callbacks& conditions = threads.conditions;
  if (conditions.alloc_condition == nullptr) return true;
  callback_ended_ = conditions.alloc_condition(0);
  return callback_ended_ != nullptr;
}

event_base* event_base::create(const event_config* config) {
  debug::is_too_late = true;
  const Method* method = choose_method(config);
  if (method == nullptr) {
    warnx("event_base_new_with_config: no event mechanism can be had");
    return nullptr;
  }
  std::unique_ptr<event_base> base(new (std::nothrow) event_base(*method, config));
  if (base == nullptr || !base->open()) {
    if (errno != ENOMEM) warn("event_base_new_with_config");
    return nullptr;
  }
  if (std::getenv("EVENT_SHOW_METHOD") != nullptr) {
    log(Severity::message, "libevent using: %s", base->method_name());
  }
  return base.release();
}

// The loop is destroyed before the events of event_base_once(), which it stops.
event_base::~event_base() {
  if (loop_ != nullptr) forget_all_events();
  loop_.reset();
  release_once_events(once_events_);
  if (callback_ended_ != nullptr) {
    threads.conditions.free_condition(callback_ended_);
  }
  free_lock(lock_);
}

// Closed descriptors are dropped first: the new loop's own may get their numbers. Methods that
// accept a bad descriptor when it is added accept it here, too.
bool event_base::reinit() {
  signals_.forget_raised();
  const bool has_all = !watches_at_once_ || unwatch_closed();
  return !loop_->after_fork() && has_all;
}

// False if there was one.
bool event_base::unwatch_closed() {
  std::size_t count;
  event** events = list_events(count);
  bool has_all = true;
  for (std::size_t i = 0; i < count; ++i) {
    event& ev = *events[i];
    if (fd_node(ev).head.active == 0 || fcntl(ev.ev_fd, F_GETFD) >= 0) continue;
    warn("event_reinit: descriptor %d", ev.ev_fd);
    loop_->stop(fd_node(ev));
    link_first(unwatched_, ev);
    has_all = false;
  }
  release(events);
  return has_all;
}

const char* event_base::method_name() const {
  const bool gathers = (flags_ & EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) != 0;
  return gathers && knows_edges() ? "epoll (with changelist)" : method_.name;
}

namespace {

void free_base(event_base* base, bool finalizes) {
  if (base == nullptr) base = current_base;
  if (base == nullptr) {
    warnx("event_base_free: there is no base");
    return;
  }
  if (base == current_base) current_base = nullptr;
  if (finalizes) base->call_finalizers();
  delete base;
}

}  // namespace

event_base* event_base_new() { return event_base::create(nullptr); }
event_base* event_base_new_with_config(const event_config* config) {
  return event_base::create(config);
}
void event_base_free(event_base* base) { free_base(base, true); }
void event_base_free_nofinalize(event_base* base) { free_base(base, false); }

int event_reinit(event_base* base) {
  const Holding holding(base->lock());
  return base->reinit() ? 0 : -1;
}

// ---- settings, and looking in

const char* event_base_get_method(const event_base* base) { return base->method_name(); }
int event_base_get_features(const event_base* base) { return base->features(); }

int event_base_priority_init(event_base* base, int priorities) {
  const Holding holding(base->lock());
  if (base->has_active() || priorities < 1 || priorities >= EVENT_MAX_PRIORITIES) return -1;
  return priorities == base->priorities() || base->set_priorities(priorities) ? 0 : -1;
}

int event_base_get_npriorities(event_base* base) {
  if (base == nullptr) base = current_base;
  const Holding holding(base->lock());
  return base->priorities();
}

// No event counts as virtual: none is internal to the library.
int event_base_get_num_events(event_base* base, unsigned kinds) {
  const Holding holding(base->lock());
  int count = 0;
  if ((kinds & EVENT_BASE_COUNT_ACTIVE) != 0) count += base->activated().now;
  if ((kinds & EVENT_BASE_COUNT_ADDED) != 0) count += base->added().now;
  return count;
}

int event_base_get_max_events(event_base* base, unsigned kinds, int clear) {
  const Holding holding(base->lock());
  const auto take = [clear](Count& count) {
    const int max = count.max;
    if (clear != 0) count.max = 0;
    return max;
  };
  int count = 0;
  if ((kinds & EVENT_BASE_COUNT_ACTIVE) != 0) count += take(base->activated());
  if ((kinds & EVENT_BASE_COUNT_ADDED) != 0) count += take(base->added());
  return count;
}

int evthread_make_base_notifiable(event_base* base) {
  if (base == nullptr) return -1;
  const Holding holding(base->lock());
  base->make_notifiable();
  return 0;
}

void libevent_global_shutdown() { debug::shut_down(); }
