// Makes a loop on a backend that must be available.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "spate/loop.h"
#include "system/kernel_set.h"

namespace spate::testing {

inline std::unique_ptr<Loop> make_loop(std::string_view backend = kKernelSet) {
  Result<std::unique_ptr<Loop>> created = Loop::create({.backend = backend});
  if (!created) {
    ADD_FAILURE() << "no loop on " << backend << ": " << created.error().message();
    std::abort();
  }
  return std::move(*created);
}

}  // namespace spate::testing
