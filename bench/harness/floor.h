/* What the servers by hand share: a listener and its connections, watched by epoll, and the one
   buffer that all read into. A floor derives from this, and has the rest in plain sight. */
#ifndef BENCH_HARNESS_FLOOR_H
#define BENCH_HARNESS_FLOOR_H

#include <sys/epoll.h>

#include <memory>

#include "harness/server.h"

class Floor {
 protected:
  Floor(int listener, Tally& tally)
      : listener_(listener),
        tally_(tally),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        buffer_(new char[kReadSize]) {}

  // Whoever waits is accepted, and told to `made`.
  template <class Made>
  void accept_all(Made made) {
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      bench_no_delay(fd);
      made(fd);
      ++tally_.accepted;
    }
  }

  // Events name the descriptor, or what belongs to it.
  void watch(int operation, int fd, std::uint32_t events) {
    control(operation, fd, {.events = events, .data = {.fd = fd}});
  }
  void watch(int operation, int fd, std::uint32_t events, void* session) {
    control(operation, fd, {.events = events, .data = {.ptr = session}});
  }

  const int listener_;
  Tally& tally_;
  const int epoll_;
  const std::unique_ptr<char[]> buffer_;

 private:
  void control(int operation, int fd, epoll_event event) {
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) bench_die("epoll_ctl");
  }
};

#endif
