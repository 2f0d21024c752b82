// A disk that responds when the test says so.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <latch>
#include <optional>
#include <thread>
#include <utility>

#include "base/fault.h"

namespace spate::testing {

// A disk whose bytes are not in memory, and which makes one system call of a pool wait. A call on
// the thread that makes it does not wait, and is counted.
class SlowDisk {
 public:
  // Call number `nth` of this kind waits.
  SlowDisk(SystemCall call, std::uint64_t nth) {
    plan_.fail_nth(SystemCall::read_at_once, 1, EAGAIN, UINT64_MAX);
    plan_.before_nth(call, nth, [this] {
      if (std::this_thread::get_id() == loop_thread_) {
        ++calls_on_loop;
      } else {
        responds_.wait();
      }
    });
    scope_.emplace(plan_);
  }
  ~SlowDisk() { respond(); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

  void respond() {
    if (!std::exchange(has_responded_, true)) responds_.count_down();
  }
  FaultPlan& plan() { return plan_; }

  std::atomic<int> calls_on_loop{0};

 private:
  const std::thread::id loop_thread_ = std::this_thread::get_id();
  std::latch responds_{1};
  bool has_responded_ = false;
  FaultPlan plan_;
  std::optional<FaultScope> scope_;
};

}  // namespace spate::testing
