// The loop of a base: a turn of spate's loop collects active events, then their callbacks are
// called.
//
// Semantics: event2/event.h (event_base_loop and the functions after it,
// event_config_set_max_dispatch_interval); probed: return values, the ends of the loop, and the
// events called between two polls.
#include "compat/libevent/debug_mode.h"
#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

int event_base::loop(int flags) {
  if (is_running_) {
    warnx("event_base_loop: a loop of this event base is running already");
    return -1;
  }
  is_running_ = true;
  is_exiting_ = is_breaking_ = false;
  runner_ = threads.id != nullptr ? threads.id() : 0;
  signals_.claim();
  int result = 0;
  while (true) {
    continues_ = false;
    deferred_in_turn_ = 0;
    if (is_exiting_ || is_breaking_) break;
    if (added_.now == 0 && (flags & EVLOOP_NO_EXIT_ON_EMPTY) == 0) {
      result = 1;
      break;
    }
    if (!turn(activated_.now == 0 && (flags & EVLOOP_NONBLOCK) == 0)) {
      result = -1;
      break;
    }
    if (activated_.now > 0) {
      const int called = call_active();
      if ((flags & EVLOOP_ONCE) != 0 && activated_.now == 0 && called != 0) break;
    } else if ((flags & EVLOOP_NONBLOCK) != 0) {
      break;
    }
  }
  time_is_cached_ = false;
  is_running_ = false;
  if (debug_enabled()) log_end(result);
  return result;
}

void event_base::log_end(int result) const {
  const char* why = is_exiting_ || is_breaking_ ? "it was told to" : "nothing happens any more";
  if (result == 1) why = "there are no events";
  if (result == -1) why = "of an error";
  log(Severity::debug, "event_base_loop: ends because %s", why);
}

bool event_base::turn(bool may_block) {
  using spate::Run;
  time_is_cached_ = false;
  deferred_in_turn_ += admit_later();
  if (refused_ != nullptr) [[unlikely]] {
    watch_again();
    may_block = false;
  }
  const Run mode = may_block ? Run::once : Run::no_wait;
  std::error_code error = loop_->run(mode);
  if (error == spate::Error::loop_forked && !loop_->after_fork()) error = loop_->run(mode);
  if (error) {
    warnx("event_base_loop: %s: %s", method_.name, error.message().c_str());
    return false;
  }
  if (refused_ != nullptr) [[unlikely]] {
    activate_refused();
  }
  queue_signals();
  time_is_cached_ = may_cache_time_;
  return true;
}

// Its queue contains only spate's own events.
void event_base::run_pending(spate::Loop& loop) {
  spate::Due due;
  while (loop.take(due)) {
  }
}

// A signal that arrived after turn() has checked, and before the loop was marked as sleeping, has
// not woken it. A descriptor that was just refused must not be waited for either.
void event_base::before_wait(spate::Loop& loop) {
  if (signals_.has_raised() || refused_ != nullptr) loop.wake();
  give_back(lock_);
}

void event_base::after_wait(spate::Loop&) { acquire(lock_); }

// ---- calling

// Calls the most urgent events; the others wait until the loop has polled for more urgent ones.
// Returns how many were called.
int event_base::call_active() {
  int called = 0;
  for (int priority = 0; priority < active_.priorities() && called == 0; ++priority) {
    if (active_.first(priority) == nullptr) continue;
    running_priority_ = priority;
    called = call_line(priority);
  }
  running_priority_ = -1;
  return called;
}

int event_base::call_line(int priority) {
  const bool is_limited =
      priority >= limits_.from_priority && (limits_.interval >= 0 || limits_.callbacks != INT_MAX);
  const std::int64_t end =
      limits_.interval >= 0 ? loop_->now().count() + limits_.interval : INT64_MAX;
  int called = 0;
  while (event_callback* callback = active_.first(priority)) {
    event& ev = event_of(*callback);
    if (has_flag(ev, EVLIST_INTERNAL)) [[unlikely]] {
      collect_signals();
      continue;
    }
    call(ev);
    end_call();
    ++called;
    if (is_breaking_ || continues_ || (is_limited && is_enough(called, end))) break;
  }
  return called;
}

bool event_base::is_enough(int called, std::int64_t end) {
  if (called >= limits_.callbacks) return true;
  if (end == INT64_MAX) return false;
  refresh_time();
  return now() >= end;
}

// Afterwards `ev` may be freed: by its callback.
inline void event_base::call(event& ev) {
  current_ = &ev.ev_evcallback;
  switch (closure_of(ev)) {
    case Closure::persist:
      dequeue(ev);
      if (interval_of(ev) != 0) add_again(ev);
      return invoke(ev);
    case Closure::plain:
      remove_for_call(ev);
      return invoke(ev);
    case Closure::signal:
      return call_signal(ev);
    case Closure::finalize:
    case Closure::finalize_and_free:
      dequeue(ev);
      return call_finalizer(ev);
  }
}

void event_base::remove_for_call(event& ev) {
  remove(ev);
  if (debug::is_on) debug::note_added(&ev, false);
}

void event_base::wake_waiting() {
  waiting_ = 0;
  threads.conditions.signal_condition(callback_ended_, 1);
}

inline void event_base::invoke(event& ev) {
  const event_callback_fn callback = ev.ev_evcallback.evcb_cb_union.evcb_callback;
  const evutil_socket_t fd = ev.ev_fd;
  const short what = ev.ev_res;
  void* argument = ev.ev_evcallback.evcb_arg;
  if (lock_ == nullptr) return callback(fd, what, argument);
  give_back(lock_);
  callback(fd, what, argument);
  acquire(lock_);
}

// The next timeout counts from the last one; it counts from now if the event was not a timeout, or
// if the next one has passed already.
void event_base::add_again(event& ev) {
  const std::int64_t interval = interval_of(ev);
  std::int64_t deadline = now() + interval;
  bool may_be_another_file = true;
  if (interval > kForwardsMost) [[unlikely]] {
    deadline = now() + (interval - kBackwards);
  } else if ((ev.ev_res & EV_TIMEOUT) != 0) {  // Otherwise the program may have deleted it.
    const std::int64_t next = timer_node(ev).deadline + interval;
    if (next >= now()) deadline = next;
    may_be_another_file = (ev.ev_events & EV_ET) != 0;  // An edge may not be reported again.
  }
  if (add_until(ev, deadline, may_be_another_file) != 0) warn("an event is not added again");
}

void event_base::call_signal(event& ev) {
  if ((ev.ev_events & EV_PERSIST) != 0) {
    dequeue(ev);
  } else {
    remove_for_call(ev);
  }
  const event_callback_fn callback = ev.ev_evcallback.evcb_cb_union.evcb_callback;
  const evutil_socket_t fd = ev.ev_fd;
  const short what = ev.ev_res;
  void* argument = ev.ev_evcallback.evcb_arg;
  calls_left_ = raises_of(ev);
  while (calls_left_ > 0 && !is_breaking_) {
    --calls_left_;
    give_back(lock_);
    callback(fd, what, argument);
    acquire(lock_);
  }
  calls_left_ = 0;
}

void event_base::call_finalizer(event& ev) {
  const event_finalize_callback_fn callback = ev.ev_evcallback.evcb_cb_union.evcb_evfinalize;
  const bool frees = closure_of(ev) == Closure::finalize_and_free;
  void* argument = ev.ev_evcallback.evcb_arg;
  current_ = nullptr;  // Ends the waits for the event's last callback.
  if (debug::is_on) debug::note_torn_down(&ev);
  give_back(lock_);
  if (callback != nullptr) callback(&ev, argument);
  if (frees) release(&ev);
  acquire(lock_);
}

// A finalizer may finalize more.
void event_base::call_finalizers() {
  acquire(lock_);
  for (int priority = 0; priority < active_.priorities(); ++priority) {
    while (event_callback* callback = active_.first(priority)) {
      event& ev = event_of(*callback);
      if (has_flag(ev, EVLIST_INTERNAL)) {
        collect_signals();
        continue;
      }
      dequeue(ev);
      if (has_flag(ev, EVLIST_FINALIZING)) {
        call_finalizer(ev);
        priority = 0;
      }
    }
  }
  give_back(lock_);
}

// Only on the loop's own thread: on others the callback may end at any time.
event* event_base::running_event() const {
  return current_ != nullptr && !is_elsewhere() ? &event_of(*current_) : nullptr;
}

// ---- the exported functions

int event_base_loop(event_base* base, int flags) {
  acquire(base->lock());
  const int result = base->loop(flags);
  give_back(base->lock());
  return result;
}

int event_base_dispatch(event_base* base) { return event_base_loop(base, 0); }

// A separate event, so that events that are active before it are called before the loop ends.
int event_base_loopexit(event_base* base, const timeval* after) {
  const event_callback_fn leave = [](evutil_socket_t, short, void* argument) {
    static_cast<event_base*>(argument)->leave_after_active();
  };
  return event_base_once(base, -1, EV_TIMEOUT, leave, base, after);
}

int event_base_loopbreak(event_base* base) {
  if (base == nullptr) return -1;
  const Holding holding(base->lock());
  base->leave_at_once();
  base->notify();
  return 0;
}

int event_base_loopcontinue(event_base* base) {
  if (base == nullptr) return -1;
  const Holding holding(base->lock());
  base->look_again();
  base->notify();
  return 0;
}

int event_base_got_exit(event_base* base) {
  const Holding holding(base->lock());
  return base->is_exiting() ? 1 : 0;
}

int event_base_got_break(event_base* base) {
  const Holding holding(base->lock());
  return base->is_breaking() ? 1 : 0;
}

event* event_base_get_running_event(event_base* base) {
  const Holding holding(base->lock());
  return base->running_event();
}
