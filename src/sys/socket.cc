#include "sys/socket.h"

#include <pthread.h>
#include <signal.h>

namespace spate::sys {

// A signal that was already waiting before the call is somebody else's, and stays.
long write_without_signal(int fd, const iovec* parts, int count) {
  if (const int error = injected(Call::write)) return -error;
  sigset_t pipe_signal;
  sigset_t before;
  sigset_t waiting;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::sigpending(&waiting);
  const bool was_waiting = ::sigismember(&waiting, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const long result = result_of(::writev(fd, parts, count));
  if (result == -EPIPE && !was_waiting) {
    const timespec at_once{};
    ::sigtimedwait(&pipe_signal, nullptr, &at_once);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

}  // namespace spate::sys
