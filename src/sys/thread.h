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

// Has this thread sleep: where there is nothing that could be waited for.
inline void sleep(Nanos span) {
  const timespec spec = to_timespec(span);
  ::nanosleep(&spec, nullptr);
}

// How many processors this process may use; at least 1.
unsigned processors();

}  // namespace spate::sys
