#include "sys/socket.h"

#include <pthread.h>
#include <signal.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace spate::sys {

namespace {

// A whole number of the environment's; -1 if there is none.
int environment_number(const char* name) {
  const char* text = ::getenv(name);
  if (text == nullptr) return -1;
  int number = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

}  // namespace

int take_inherited() {
  const bool for_us = environment_number("LISTEN_PID") == ::getpid();
  const int count = environment_number("LISTEN_FDS");
  if (!for_us) return 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  return count > 0 ? count : 0;
}

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
