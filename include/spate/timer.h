// Timer: calls back after a time, once or repeatedly, on the monotonic clock.
//
// It never expires early, counted from Loop::now() (the start of this turn; Loop::update_now()
// refreshes it). Timers that are due together are called by deadline; equal deadlines are called in
// the order in which they were started. restart() keeps a timer's place. The order is exact for up
// to two million starts in between. A one-shot timer is inactive when its callback is called. A
// repeating timer does not drift; after a stall it skips the times that it missed.
//
// restart() to a later deadline, stop(), and start() after it are a store or two for any number of
// timers, so a timeout may be reset on each message. An earlier deadline is also constant time;
// timers that are started out of order within about a millisecond share a small heap.
//
// Threads: the loop's thread only.
#pragma once

#include "spate/watcher.h"

namespace spate {

class Timer : public Watcher<Timer, TimerNode> {
 public:
  Timer(Loop& loop, Delegate<Timer> callback) : Watcher(loop, callback) {
    node_.deadline = kParked;  // The value of every inactive Timer.
  }
  ~Timer() {
    if (is_known()) loop_->stop(node_);
  }

  // Hides Watcher::is_active(): a stopped timer may still be linked.
  bool is_active() const { return node_.deadline != kParked; }

  // Starts or restarts the timer to expire once, `delay` from Loop::now(). A negative delay counts
  // as zero, which expires in the next turn; bounded by kForever. Drops an expiry that is queued
  // but not yet called. Returns false when memory runs out (never after Loop::reserve()); the timer
  // is then inactive.
  bool start(Nanos delay) { return start(delay, Nanos{0}); }
  // Expires first after `delay`, then every `repeat` (zero: once).
  bool start(Nanos delay, Nanos repeat) {
    set_repeat(repeat);
    return restart(delay);
  }
  void stop() {
    if (is_pending()) [[unlikely]]
      loop_->clear_pending(node_.head);
    if (!is_active()) return;
    SPATE_ASSERT(loop_->is_mine(), kWrongThread);
    ++loop_->parked_timers_;
    node_.deadline = kParked;
  }
  // Starts or restarts the timer to expire `delay` from now, keeping repeat(). Drops an expiry that
  // is queued but not yet called.
  bool restart(Nanos delay) {
    const std::int64_t deadline = deadline_after(loop_->now(), delay).count();
    if (is_pending()) [[unlikely]]
      loop_->clear_pending(node_.head);
    if (deadline < node_.deadline) return loop_->restart(node_, deadline);
    node_.deadline = deadline;  // The wheel reads it when the earlier deadline is reached.
    return true;
  }
  // Calls restart(repeat()), or stop() if the timer does not repeat, as libev's ev_timer_again
  // does.
  bool again() {
    if (node_.repeat == 0) return stop(), true;
    return restart(repeat());
  }

  Nanos repeat() const { return Nanos{node_.repeat}; }
  // Sets the interval. Takes effect at the next expiry or again(). A negative value counts as zero;
  // bounded by kForever.
  void set_repeat(Nanos repeat) {
    node_.repeat = repeat < Nanos{0} ? 0 : (repeat < kForever ? repeat : kForever).count();
  }

  // Returns the expiry in loop time; meaningful while active.
  Nanos deadline() const { return Nanos{node_.deadline}; }
  // Returns the time to the expiry; zero when overdue or inactive.
  Nanos remaining() const {
    return is_active() && deadline() > loop_->now() ? deadline() - loop_->now() : Nanos{0};
  }
};

static_assert(sizeof(Timer) <= 64);

}  // namespace spate
