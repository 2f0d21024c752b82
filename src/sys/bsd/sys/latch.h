// Latch: waits until other threads have counted to zero.
#pragma once

#include <pthread.h>

namespace spate::sys {

// As std::latch, of which a program has one copy, the library's or its own.
class Latch {
 public:
  explicit Latch(int count) : left_(count) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  ~Latch() {
    pthread_cond_destroy(&is_zero_);
    pthread_mutex_destroy(&guard_);
  }

  // The last call may be the last use of the Latch.
  void count_down();
  // Waits until the count is zero.
  void wait();

 private:
  pthread_mutex_t guard_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t is_zero_ = PTHREAD_COND_INITIALIZER;
  int left_;
};

}  // namespace spate::sys
