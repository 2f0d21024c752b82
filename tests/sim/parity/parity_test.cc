// Each scenario on every backend of the system and in a World: its program must see the same. The
// top of stage.h lists the allowed differences.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/parity/stage.h"

namespace spate::parity {
namespace {

std::string played(const Scenario& scenario, std::unique_ptr<Stage> stage) {
  scenario.play(*stage);
  return stage->finish();
}

class Parity : public ::testing::TestWithParam<Scenario> {};

TEST_P(Parity, ResultsAreEqualOnEveryBackendAndInWorld) {
  const std::string expected = played(GetParam(), real_stage("epoll"));
  EXPECT_FALSE(expected.empty());
  EXPECT_FALSE(expected.contains("waited in vain")) << expected;
  for (const char* backend : {"poll", "select", "io_uring"})
    EXPECT_EQ(played(GetParam(), real_stage(backend)), expected) << backend;
  EXPECT_EQ(played(GetParam(), world_stage()), expected) << "in a World";
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Parity, ::testing::ValuesIn(all_scenarios()),
                         ::testing::PrintToStringParamName());

TEST(ParityScenarios, HaveDistinctNames) {
  std::map<std::string_view, int> names;
  for (const Scenario& scenario : all_scenarios()) ++names[scenario.name];
  EXPECT_GE(names.size(), 60u);
  EXPECT_EQ(names.size(), all_scenarios().size());
}

}  // namespace
}  // namespace spate::parity
