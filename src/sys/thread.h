// The library's threads, and their processors.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "spate/export.h"
#include "sys/clock.h"
#include "sys/latch.h"

namespace spate::sys {

class Thread {
 public:
  using Body = void (*)(void* context);

  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Starts the thread. Returns 0 or a negated errno; -EAGAIN when the system starts no more. All
  // signals are blocked in the thread: the program's own threads handle them.
  SPATE_EXPORT long start(Body body, void* context);
  void join() {
    if (runs_) pthread_join(id_, nullptr);
    runs_ = false;
  }
  bool runs() const { return runs_; }

  // Names the thread, truncated to 15 bytes, the limit of Linux. macOS lets a thread name only
  // itself: there it does nothing.
  SPATE_EXPORT void set_name(std::string_view name);
  // Pins it to the `index`-th of the processors that this process may use, modulo their number.
  // Only Linux does.
  void pin(unsigned index);

 private:
  pthread_t id_{};
  bool runs_ = false;
};

// A function that is called at the end of a thread, after the destructors of its thread_locals. One
// per thread and program; not called in the thread that calls exit().
class ThreadEnd {
 public:
  // False when the system has no more keys: end() is then not called.
  bool attach();

 protected:
  ~ThreadEnd() = default;

 private:
  static void on_end(void* self);
  // Called when the thread is about to end.
  virtual void end() = 0;

  bool was_asked_ = false;
};

// Lets another thread run.
void yield();

// Makes this processor pause `times` times, without a system call: each takes about 10 ns to 70 ns.
inline void pause_processor(int times) {
  for (; times > 0; --times) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");  // "yield" takes no time on most of these.
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }
}

// Sleeps. For waits without an event.
inline void sleep(Nanos span) {
  const timespec spec = to_timespec(span);
  ::nanosleep(&spec, nullptr);
}

// Returns how many processors this process may use; at least 1.
unsigned processors();

}  // namespace spate::sys
