// Latch: waits until other threads have counted to zero.
#pragma once

#include <atomic>

namespace spate::sys {

// As std::latch, of which a program has one copy, the library's or its own. The calls of this one
// are always the library's (src/sim/syscalls/calls.txt).
class Latch {
 public:
  explicit Latch(int count) : left_(count) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // The last call may be the last use of the Latch.
  void count_down();
  // Waits until the count is zero.
  void wait();

 private:
  std::atomic<int> left_;
};

}  // namespace spate::sys
