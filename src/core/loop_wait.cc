// LoopCore: computing the timeout, sleeping, and reading the clock.
#include "core/loop_core.h"

#include <algorithm>

namespace spate {

// Returns whether a turn needs the slow path.
bool LoopCore::has_slow_work() const {
  return fork_hooks_due_ || rebuild_ || is_wakeup_stopped() || is_suspended() || spinner_.is_on() ||
         !hooks(Hook::prepare).empty() || !hooks(Hook::idle).empty() ||
         !hooks(Hook::check).empty() || fds_.has_always_ready() || paths_.has_unreported() ||
         !periodics_.empty();
}

// Returns how long no internal event can become due. Without timers it reads no clock.
Nanos LoopCore::wait_time() noexcept {
  if (!pending_.empty() || fds_.has_changes()) return Nanos{0};
  Nanos longest = kForever;
  if (needs_slow_turn_) {
    if (!hooks(Hook::idle).empty() || fds_.has_always_ready() || paths_.has_unreported())
      return Nanos{0};
    longest = std::min(periodics_.longest_wait(), is_wakeup_stopped() ? kDeafSleep : kForever);
  } else if (timers_.size() == 0) {
    return kForever;
  }
  update_now();                   // The callbacks may have taken time.
  timers_.advance(now_.count());  // Opens near buckets, so that the next time is a deadline.
  const std::int64_t deadline = timers_.next_deadline();
  if (deadline <= now_.count()) return Nanos{0};
  if (deadline == INT64_MAX || is_suspended()) return longest;
  return std::min(Nanos{deadline} - now_, longest);
}

// A timeout that only cascades the timer wheel does not end the turn.
long LoopCore::wait_by_the_clock() noexcept {
  for (;;) {
    const Nanos timeout = wait_time();
    if (timeout <= Nanos{0}) return look();
    const Nanos began = now_;
    // Spinning needs a clock that advances.
    const bool spins = spinner_.is_on() && !is_suspended();
    const long result = spins ? spin_and_sleep(timeout) : sleep(timeout);
    const bool timed_out = now_ - began >= timeout;
    if (result < 0 || !timed_out || has_found_something()) return result;
    timers_.advance(now_.count());
    if (timers_.next_deadline() <= now_.count() || !periodics_.empty()) return 0;
  }
}

long LoopCore::spin_and_sleep(Nanos timeout) noexcept {
  const Nanos began = now_;
  const Nanos window = std::min(spinner_.window(began), timeout);
  Nanos looked{0};
  long result = 0;
  bool is_over = false;
  for (; looked < window && !is_over; looked = now_ - began) {
    result = wait_once(Nanos{0});
    has_messages_ = has_messages();
    is_over = result < 0 || has_found_something();
  }
  is_over = is_over || looked >= timeout;
  if (!is_over) result = sleep(timeout - looked);
  spinner_.note(looked, now_ - began, is_over);
  return result;
}

// Checks for messages after announcing the sleep. A later message wakes the loop, so no second
// check is needed unless it was woken.
long LoopCore::sleep(Nanos timeout) noexcept {
  wakeup_.announce_sleep();
  has_messages_ = has_messages();
  if (is_timed_) begin_sleep();
  const long result = wait_once(has_messages_ ? Nanos{0} : timeout);
  if (wakeup_.announce_awake()) has_messages_ = true;
  if (is_timed_) end_sleep();
  return result;
}

// Does not sleep, and therefore does not announce it. Senders make no system call then, so the
// queues are always checked afterwards.
long LoopCore::look() noexcept {
  has_messages_ = true;
  return wait_once(Nanos{0});
}

void LoopCore::begin_sleep() {
  const Nanos now = loop_time();
  metrics_.busy += now - std::min(woke_up_, now);
  woke_up_ = now;
}

void LoopCore::end_sleep() {
  metrics_.blocked += now_ - woke_up_;
  woke_up_ = now_;
}

Nanos LoopCore::prepare_to_wait() {
  if (is_foreign()) return Nanos{0};  // run() will return the error.
  if (depth_ > 0) locals_.on_handover();
  leave_fast_path();
  reconcile();
  const Nanos timeout = wait_time();
  if (timeout == Nanos{0}) return timeout;
  wakeup_.announce_sleep();
  return has_messages() ? Nanos{0} : timeout;
}

void LoopCore::suspend() {
  if (!is_suspended()) suspended_at_ = clock_.monotonic();
  update_now();  // A timer started from now on must not count from an earlier time.
  request_slow_turn();
}

void LoopCore::resume() {
  if (is_suspended()) suspended_ += clock_.monotonic() - suspended_at_;
  suspended_at_ = Nanos{-1};
  update_now();
}

}  // namespace spate
