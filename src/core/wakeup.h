// Wakeup: how other threads and signal handlers get a sleeping loop to look around.
//
// The kernel is entered only if the loop has announced that it sleeps, and then once: whoever turns
// `sleeping` into `woken` writes. The loop announces first and then looks at its queues once more;
// the others fill a queue first and then look at the announcement. So one of the two sees the
// other.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>

#include "sys/descriptor.h"
#include "sys/process.h"

namespace spate {

class Wakeup {
 public:
  // Opens, or opens anew in the child of a fork.
  std::error_code open() {
    const long fd = sys::create_eventfd();
    if (fd < 0) return sys::error_code(fd);
    eventfd_ = sys::Descriptor(fd);
    fork_generation_ = sys::fork_generation();
    state_.store(kAwake);
    return {};
  }
  // Readable once somebody has woken the loop, until drain().
  int fd() const { return eventfd_.get(); }

  // The loop's thread.
  void announce_sleep() { state_.store(kSleeping); }
  // Whether somebody has woken the loop. Who does so just now is found by the next sleep.
  bool announce_awake() {
    // Others read it at each post: not to be taken from their caches for nothing.
    const int state = state_.load(std::memory_order_relaxed);
    if (state != kAwake) state_.store(kAwake);
    return state == kWoken;
  }
  void drain() {
    std::uint64_t count;
    sys::read(eventfd_.get(), &count, sizeof(count));  // Empty already: fine as well.
  }

  // Any thread, any signal handler.
  void wake() noexcept {
    if (state_.load() != kSleeping || state_.exchange(kWoken) != kSleeping) return;
    if (fork_generation_ != sys::fork_generation()) return;  // It is the parent that sleeps.
    writes_.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    while (sys::write(eventfd_.get(), &one, sizeof(one)) == -EINTR) {
    }
  }
  std::uint64_t writes() const { return writes_.load(std::memory_order_relaxed); }

 private:
  enum State : int { kAwake, kSleeping, kWoken };

  sys::Descriptor eventfd_;
  std::atomic<int> state_{kAwake};
  std::atomic<std::uint64_t> writes_{0};
  std::uint32_t fork_generation_ = 0;
};

}  // namespace spate
