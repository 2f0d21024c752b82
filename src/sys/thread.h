// Threads of the library's own, and the processors they may run on.
#pragma once

#include <pthread.h>

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

  // A negated errno; -EAGAIN when the system gives no more. All signals are blocked in it: they are
  // for the program's own threads.
  long start(Body body, void* context);
  void join() {
    if (runs_) pthread_join(id_, nullptr);
    runs_ = false;
  }
  bool runs() const { return runs_; }

  // Cut to the fifteen bytes that Linux takes.
  void set_name(std::string_view name);
  // To the processor that comes `index`-th among those this process may use, counted round.
  void pin(unsigned index);

 private:
  pthread_t id_{};
  bool runs_ = false;
};

// Something of a thread's that goes with it, after all that the destructors of its thread_locals
// may still do. One a thread and program; the thread that ends the process with exit() keeps its
// own.
class ThreadEnd {
 public:
  // False when the system has no room for it: it is then kept for ever.
  bool attach();

 protected:
  ~ThreadEnd() = default;

 private:
  static void on_end(void* self);
  // The thread is about to end.
  virtual void end() = 0;

  bool was_asked_ = false;
};

// Has this thread sleep: where there is nothing that could be waited for.
inline void sleep(Nanos span) {
  const timespec spec = to_timespec(span);
  ::nanosleep(&spec, nullptr);
}

// How many processors this process may use; at least 1.
unsigned processors();

}  // namespace spate::sys
