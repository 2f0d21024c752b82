// LoopCore: how long the loop may sleep, and sleeping; and time, which passes meanwhile.
#include "core/loop_core.h"

#include <algorithm>

namespace spate {

// Whether a turn has more to look after than descriptors, timers and messages.
bool LoopCore::needs_attention() const {
  return fork_hooks_due_ || rebuild_ || is_deaf() || is_suspended() || spinner_.is_on() ||
         !hooks(Hook::prepare).empty() || !hooks(Hook::idle).empty() ||
         !hooks(Hook::check).empty() || fds_.has_always_ready() || paths_.has_unreported() ||
         !periodics_.empty();
}

// How long nothing of the loop's own can become due. Without timers that needs no clock.
Nanos LoopCore::wait_time() noexcept {
  if (!pending_.empty() || fds_.has_changes()) return Nanos{0};
  Nanos longest = kForever;
  if (attention_) {
    if (!hooks(Hook::idle).empty() || fds_.has_always_ready() || paths_.has_unreported())
      return Nanos{0};
    longest = std::min(periodics_.longest_wait(), is_deaf() ? kDeafSleep : kForever);
  } else if (timers_.size() == 0) {
    return kForever;
  }
  update_now();                   // The callbacks may have taken their time.
  timers_.advance(now_.count());  // So that it is a deadline that comes next, if it is near.
  const std::int64_t deadline = timers_.next_deadline();
  if (deadline <= now_.count()) return Nanos{0};
  if (deadline == INT64_MAX || is_suspended()) return longest;
  return std::min(Nanos{deadline} - now_, longest);
}

// A wait that ends only because timers have to be sorted more finely goes on: nobody is to see it.
long LoopCore::wait_by_the_clock() noexcept {
  for (;;) {
    const Nanos timeout = wait_time();
    if (timeout <= Nanos{0}) return look();
    const Nanos began = now_;
    const bool spins = spinner_.is_on() && !is_suspended();  // For which time has to pass.
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

// What other threads have left is looked for on the way in. What they leave after that wakes the
// loop: if nobody did, there is nothing.
long LoopCore::sleep(Nanos timeout) noexcept {
  wakeup_.announce_sleep();
  has_messages_ = has_messages();
  if (is_timed_) begin_sleep();
  const long result = wait_once(has_messages_ ? Nanos{0} : timeout);
  if (wakeup_.announce_awake()) has_messages_ = true;
  if (is_timed_) end_sleep();
  return result;
}

// Without sleeping, and therefore without an announcement.
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
  if (is_foreign()) return Nanos{0};  // run() says what is the matter.
  if (depth_ > 0) locals_.on_handover();
  leave_corridor();
  reconcile();
  const Nanos timeout = wait_time();
  if (timeout == Nanos{0}) return timeout;
  wakeup_.announce_sleep();
  return has_messages() ? Nanos{0} : timeout;
}

void LoopCore::suspend() {
  if (!is_suspended()) suspended_at_ = clock_.monotonic();
  attend();
}

void LoopCore::resume() {
  if (is_suspended()) suspended_ += clock_.monotonic() - suspended_at_;
  suspended_at_ = Nanos{-1};
  update_now();
}

}  // namespace spate
