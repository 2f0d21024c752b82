// The backends that tests are run on.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "spate/loop.h"

namespace spate::testing {

// Asked in a thread of its own: a ring that was closed interrupts its thread once more.
inline bool has_backend(std::string_view name) {
  bool has = false;
  std::thread([&] {
    const auto created = Loop::create({.backend = name});
    has = created && (*created)->backend_info().name == name;
  }).join();
  return has;
}

// All that this machine has: many sandboxes forbid io_uring, and a loop that asks for it is then
// made on another one. CreateTest.ThisMachineHasAllBackends says so.
inline const std::vector<std::string_view>& backends_here() {
  static const std::vector<std::string_view> here = [] {
    std::vector<std::string_view> names = Loop::backends();
    std::erase_if(names, [](std::string_view name) { return !has_backend(name); });
    return names;
  }();
  return here;
}

// Where a ring was closed: waits for the interruption that follows, for the next test's sake.
// Whether it came.
inline bool await_interruption() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event;
  const bool came = ::epoll_wait(set, &event, 1, 50) < 0;
  ::close(set);
  return came;
}

}  // namespace spate::testing
