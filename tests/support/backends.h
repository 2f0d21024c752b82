// The backends that tests are run on.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "spate/loop.h"

namespace spate::testing {

inline bool has_backend(std::string_view name) {
  const auto created = Loop::create({.backend = name});
  return created && (*created)->backend_info().name == name;
}

// All that this machine has: many sandboxes forbid io_uring, and a loop that asks for it is then
// made on another one. CreateTest.ThisMachineHasAllBackends says so.
inline std::vector<std::string_view> backends_here() {
  std::vector<std::string_view> names = Loop::backends();
  std::erase_if(names, [](std::string_view name) { return !has_backend(name); });
  return names;
}

}  // namespace spate::testing
