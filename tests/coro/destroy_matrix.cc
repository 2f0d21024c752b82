// Each operation that can be awaited, destroyed at each moment: no destroyed task is resumed, no
// frame leaks, and the object serves the next task. In a World: tests/sim.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>

#include "tests/coro/destroy_field.h"
#include "tests/support/backends.h"

namespace spate::testing {
namespace {

using Operation = destroying::Operation<destroying::Field>;
using Moment = destroying::Moment<destroying::Field>;

class DestroyMatrix : public ::testing::TestWithParam<std::tuple<Operation, Moment>> {};
INSTANTIATE_TEST_SUITE_P(
    All, DestroyMatrix,
    ::testing::Combine(::testing::ValuesIn(destroying::kOperations),
                       ::testing::ValuesIn(destroying::kMoments<destroying::Field>)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name;
    });

TEST_P(DestroyMatrix, DestroyedWaiterIsSkippedAndNextOneIsServed) {
  for (const std::string_view backend : backends_here()) {
    SCOPED_TRACE(backend);
    destroying::Field field(backend);
    destroying::check(field, std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
}

}  // namespace
}  // namespace spate::testing
