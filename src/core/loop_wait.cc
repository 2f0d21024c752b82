// LoopCore: how long the loop may sleep, and sleeping; and time, which passes meanwhile.
#include "core/loop_core.h"

#include <algorithm>

namespace spate {

bool LoopCore::has_something_queued() const { return !pending_.empty() || posts_.has_posts(); }

// Whether other threads or signal handlers have left something.
bool LoopCore::has_messages() const {
  return posts_.has_posts() || sent_.load() != nullptr || signals_.has_raised();
}

bool LoopCore::is_kept_alive() const { return active_count() > 0; }

// How long nothing of the loop's own can become due.
Nanos LoopCore::wait_time() noexcept {
  if (has_something_queued() || !hooks(Hook::idle).empty() || fds_.has_always_ready() ||
      fds_.has_changes() || paths_.has_unreported()) {
    return Nanos{0};
  }
  const bool is_deaf = wakeup_node_.head.active == 0;
  const Nanos longest = std::min(periodics_.longest_wait(), is_deaf ? kDeafSleep : kForever);
  timers_.advance(now_.count());  // So that it is a deadline that comes next, if it is near.
  const std::int64_t deadline = timers_.next_deadline();
  if (deadline <= now_.count()) return Nanos{0};
  if (deadline == INT64_MAX || is_suspended()) return longest;
  return std::min(Nanos{deadline} - now_, longest);
}

// A wait that ends only because timers have to be sorted more finely goes on: nobody is to see it.
std::error_code LoopCore::wait(bool may_block) noexcept {
  if (!may_block || !is_kept_alive()) return wait_once(Nanos{0});
  for (;;) {
    update_now();  // The callbacks may have taken their time.
    const Nanos began = now_;
    const Nanos timeout = wait_time();
    const bool spins = busy_poll_ > Nanos{0} && !is_suspended();  // For which time has to pass.
    const std::error_code error = timeout <= Nanos{0} ? wait_once(timeout)
                                  : spins             ? spin_and_sleep(timeout)
                                                      : sleep(timeout);
    const bool timed_out = timeout > Nanos{0} && now_ - began >= timeout;
    if (error || !timed_out || !ready_.empty() || has_messages()) return error;
    timers_.advance(now_.count());
    if (timers_.next_deadline() <= now_.count() || !periodics_.empty()) return {};
  }
}

std::error_code LoopCore::spin_and_sleep(Nanos timeout) noexcept {
  const Nanos began = now_;
  const Nanos window = std::min(busy_poll_, timeout);
  while (now_ - began < window) {
    const std::error_code error = wait_once(Nanos{0});
    if (error || !ready_.empty() || has_messages()) return error;
  }
  const Nanos left = timeout - (now_ - began);
  return left > Nanos{0} ? sleep(left) : std::error_code();
}

std::error_code LoopCore::sleep(Nanos timeout) noexcept {
  wakeup_.announce_sleep();
  const Nanos began = now_;
  metrics_.busy += began - std::min(woke_up_, began);
  const std::error_code error = wait_once(has_messages() ? Nanos{0} : timeout);
  wakeup_.announce_awake();
  metrics_.blocked += now_ - began;
  woke_up_ = now_;
  return error;
}

std::error_code LoopCore::wait_once(Nanos timeout) noexcept {
  if (dispatcher_ != nullptr) dispatcher_->before_wait(*this);
  ready_.clear();
  const std::error_code error = backend_->wait(timeout, ready_);
  if (dispatcher_ != nullptr) dispatcher_->after_wait(*this);
  update_now();
  return error;
}

Nanos LoopCore::prepare_to_wait() {
  if (is_foreign()) return Nanos{0};  // run() says what is the matter.
  if (depth_ > 0) locals_.on_handover();
  reconcile();
  update_now();
  const Nanos timeout = wait_time();
  if (timeout == Nanos{0}) return timeout;
  wakeup_.announce_sleep();
  return has_messages() ? Nanos{0} : timeout;
}

void LoopCore::suspend() {
  if (!is_suspended()) suspended_at_ = clock_.monotonic();
}

void LoopCore::resume() {
  if (is_suspended()) suspended_ += clock_.monotonic() - suspended_at_;
  suspended_at_ = Nanos{-1};
  update_now();
}

}  // namespace spate
