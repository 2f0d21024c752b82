// The destroy matrix of coroutines in a World: each operation that can be awaited there, destroyed
// at each moment.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "spate/sim/world.h"
#include "tests/coro/destroy_field.h"

namespace spate::testing {
namespace {

using destroying::Field;
using Operation = destroying::Operation<Field>;
using Moment = destroying::Moment<Field>;

// A World has no threads other than its own, no processes, and only spate's sockets.
std::vector<Operation> operations_of_a_world() {
  const std::set<std::string_view> absent = {"signals_next", "exit_of", "offload", "datagram_send"};
  std::vector<Operation> some;
  for (const Operation& operation : destroying::kOperations) {
    if (!absent.contains(operation.name)) some.push_back(operation);
  }
  return some;
}

class SimDestroyMatrix : public ::testing::TestWithParam<std::tuple<Operation, Moment>> {};
INSTANTIATE_TEST_SUITE_P(All, SimDestroyMatrix,
                         ::testing::Combine(::testing::ValuesIn(operations_of_a_world()),
                                            ::testing::ValuesIn(destroying::kMoments<Field>)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" +
                                  std::get<1>(test.param).name;
                         });

TEST_P(SimDestroyMatrix, CancelledWaiterIsSkipped) {
  sim::World world(1);
  sim::Host& host = world.add_host("host");
  const std::size_t before = world.open_descriptors();
  host.run([](Loop&) {
    Field field("epoll");
    destroying::check(field, std::get<0>(GetParam()), std::get<1>(GetParam()));
  });
  world.run_for(std::chrono::hours(1));
  EXPECT_EQ(world.open_descriptors(), before);
}

}  // namespace
}  // namespace spate::testing
