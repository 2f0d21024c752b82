/* Shared by the hand-written servers: a listener and its connections, watched by epoll, and one
   buffer for all reads. A floor derives from this class and adds the rest. */
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

  // Accepts every pending connection, and calls `made` for each.
  template <class Made>
  void accept_all(Made made) {
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      bench_no_delay(fd);
      made(fd);
      ++tally_.accepted;
    }
  }

  // Registers a descriptor, with the data that its events carry.
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
