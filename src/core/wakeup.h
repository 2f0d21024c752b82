// Wakeup: wakes a sleeping loop from other threads and signal handlers.
//
// A wake-up makes a system call only if the loop has announced that it sleeps, and only once: the
// thread that changes `sleeping` to `woken` writes. The loop announces first, then checks its
// queues once more. Other threads fill a queue first, then check the announcement. So at least one
// of the two sees the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>

#include "sys/bell.h"
#include "sys/process.h"

namespace spate {

class Wakeup {
 public:
  // Opens it, or reopens it in the child of a fork.
  std::error_code open() {
    if (const long result = bell_.open(); result < 0) return sys::error_code(result);
    fork_generation_ = sys::fork_generation();
    state_.store(kAwake);
    return {};
  }
  // Readable from a wake-up until drain().
  int fd() const { return bell_.fd(); }

  // The loop's thread.
  void announce_sleep() { state_.store(kSleeping); }
  // Returns whether the loop was woken. A concurrent wake-up is found by the next sleep.
  bool announce_awake() {
    // Other threads read the state at each post: it is written only if it changes, to keep their
    // cached copies valid.
    const int state = state_.load(std::memory_order_relaxed);
    if (state != kAwake) state_.store(kAwake);
    return state == kWoken;
  }
  void drain() { bell_.silence(); }

  // Any thread, any signal handler.
  void wake() noexcept {
    if (state_.load() != kSleeping || state_.exchange(kWoken) != kSleeping) return;
    if (fork_generation_ != sys::fork_generation()) return;  // The sleeping loop is the parent's.
    writes_.fetch_add(1, std::memory_order_relaxed);
    bell_.ring();
  }
  std::uint64_t writes() const { return writes_.load(std::memory_order_relaxed); }

 private:
  enum State : int { kAwake, kSleeping, kWoken };

  sys::Bell bell_;
  std::atomic<int> state_{kAwake};
  std::atomic<std::uint64_t> writes_{0};
  std::uint32_t fork_generation_ = 0;
};

}  // namespace spate
