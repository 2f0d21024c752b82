// RunningNote: the running callback of a loop, written by its thread and read by any. It is a
// sequence lock: a reader retries if the values change meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

namespace spate {

class RunningNote {
 public:
  struct Called {
    std::int64_t began = 0;      // By the loop's clock.
    const char* kind = nullptr;  // nullptr: none.
    const void* watcher = nullptr;
  };

  // The loop's thread. Returns the previous value.
  Called replace(const Called& called) {
    const Called before{began_.load(std::memory_order_relaxed),
                        kind_.load(std::memory_order_relaxed),
                        watcher_.load(std::memory_order_relaxed)};
    const std::uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);  // Odd: being changed.
    began_.store(called.began, std::memory_order_release);
    kind_.store(called.kind, std::memory_order_release);
    watcher_.store(called.watcher, std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
    return before;
  }

  // Any thread.
  Called get() const {
    for (;;) {
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      const Called called{began_.load(std::memory_order_acquire),
                          kind_.load(std::memory_order_acquire),
                          watcher_.load(std::memory_order_acquire)};
      if (before == version_.load(std::memory_order_relaxed) && before % 2 == 0) return called;
    }
  }

 private:
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::int64_t> began_{0};
  std::atomic<const char*> kind_{nullptr};
  std::atomic<const void*> watcher_{nullptr};
};

}  // namespace spate
