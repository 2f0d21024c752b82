// The same scenario on every backend of the system's and in a World: what its program sees is the
// same. What may differ is written at the top of stage.h.
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

TEST_P(Parity, OnEveryBackendAndInAWorld) {
  const std::string expected = played(GetParam(), real_stage("epoll"));
  EXPECT_FALSE(expected.empty());
  EXPECT_FALSE(expected.contains("waited in vain")) << expected;
  for (const char* backend : {"poll", "select", "io_uring"})
    EXPECT_EQ(played(GetParam(), real_stage(backend)), expected) << backend;
  EXPECT_EQ(played(GetParam(), world_stage()), expected) << "in a World";
}

std::string name_of(const ::testing::TestParamInfo<Scenario>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Parity, ::testing::ValuesIn(all_scenarios()), name_of);

TEST(ParityScenarios, AreManyAndOfDifferentNames) {
  std::map<std::string_view, int> names;
  for (const Scenario& scenario : all_scenarios()) ++names[scenario.name];
  EXPECT_GE(names.size(), 60u);
  EXPECT_EQ(names.size(), all_scenarios().size());
}

}  // namespace
}  // namespace spate::parity
