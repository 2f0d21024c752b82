// The library's threads, and the processors they may run on.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "sys/clock.h"

namespace spate::sys {

class Thread {
 public:
  using Body = void (*)(void* context);

  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // A negated errno; -EAGAIN when the system gives no more. All signals are blocked in the thread:
  // they are for the program's own.
  long start(Body body, void* context);
  void join() {
    if (runs_) pthread_join(id_, nullptr);
    runs_ = false;
  }
  bool runs() const { return runs_; }

  // Cut to 15 bytes, which is Linux' limit.
  void set_name(std::string_view name);
  // To the `index`-th of the processors that this process may use, modulo their number.
  void pin(unsigned index);

 private:
  pthread_t id_{};
  bool runs_ = false;
};

// Called at the end of a thread, after the destructors of its thread_locals. One per thread and
// program; not called in the thread that calls exit().
class ThreadEnd {
 public:
  // False when the system has no more keys: end() is then not called.
  bool attach();

 protected:
  ~ThreadEnd() = default;

 private:
  static void on_end(void* self);
  // The thread is about to end.
  virtual void end() = 0;

  bool was_asked_ = false;
};

// As std::latch, of which a program has one copy, the library's or its own: this one's calls are
// the library's (src/sim/calls/calls.txt).
class Latch {
 public:
  explicit Latch(int count) : left_(count) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // The last one may be the last use of the Latch.
  void count_down();
  // Until it has been counted down to zero.
  void wait();

 private:
  std::atomic<int> left_;
};

// Lets another thread run.
void yield();

// Where there is nothing that could be waited for.
inline void sleep(Nanos span) {
  const timespec spec = to_timespec(span);
  ::nanosleep(&spec, nullptr);
}

// How many processors this process may use; at least 1.
unsigned processors();

}  // namespace spate::sys
