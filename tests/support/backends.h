// The backends that tests run on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "spate/loop.h"

namespace spate::testing {

// Created on a separate thread: a closed ring interrupts its thread once more.
inline bool has_backend(std::string_view name) {
  bool has = false;
  std::thread([&] {
    const auto created = Loop::create({.backend = name});
    has = created && (*created)->backend_info().name == name;
  }).join();
  return has;
}

// Returns all that this machine has: many sandboxes forbid io_uring, and a loop that requests it
// then uses another one. CreateTest.SucceedsForAllBackendsOnThisMachine fails then.
inline const std::vector<std::string_view>& backends_here() {
  static const std::vector<std::string_view> here = [] {
    std::vector<std::string_view> names = Loop::backends();
    std::erase_if(names, [](std::string_view name) { return !has_backend(name); });
    return names;
  }();
  return here;
}

// Returns whether the backend registers descriptors in an epoll set: the ring does, too.
inline bool uses_epoll(std::string_view backend) {
  return backend == "epoll" || backend == "io_uring";
}
// Returns whether the kernel keeps the set of descriptors: a change is then a system call, regular
// files are refused, and other loops can wait on the set.
inline bool uses_kernel_set(std::string_view backend) {
  return uses_epoll(backend) || backend == "kqueue";
}
inline bool uses_select(std::string_view backend) { return backend == "select"; }

// Generates parameters. A test that some backends cannot pass belongs to a separate suite, which is
// instantiated with the others, so that a missing combination is not a skipped test.
inline auto backends_where(const std::vector<std::string_view>& backends,
                           bool (*holds)(std::string_view backend)) {
  std::vector<std::string_view> some;
  std::ranges::copy_if(backends, std::back_inserter(some), holds);
  return ::testing::ValuesIn(some);
}

// Names a test after its backend.
inline std::string backend_test_name(const ::testing::TestParamInfo<std::string_view>& backend) {
  return std::string(backend.param);
}

}  // namespace spate::testing
