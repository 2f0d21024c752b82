// Random programs of everything that the headers allow; README.md says how to read a failure.
//
// SPATE_SEED=<number> does one program alone, SPATE_CHAOS_SEEDS=<first>:<count> others than the
// usual; SPATE_CHAOS_BACKEND=<name> on one backend only; SPATE_CHAOS_SURVEY=1 goes on after a
// failure, and counts; SPATE_CHAOS_TELL=1 says what happens in each; SPATE_CHAOS_COVERAGE=1 prints
// what was never done where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "chaos/runner.h"
#include "spate/loop.h"
#include "tests/support/backends.h"

namespace spate::chaos {
namespace {

constexpr std::uint64_t kPrograms = 700;  // A part.
constexpr int kParts = 4;
constexpr std::uint64_t kCovering = 4500;  // To reach everything.

std::uint64_t environment_number(const char* text, std::uint64_t otherwise) {
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

template <class Function>
void for_each_gap(const Coverage& coverage, Function function) {
  for (int op = 0; op < kOps; ++op) {
    for (int where = 0; where < kWheres; ++where) {
      const auto one = static_cast<Op>(op);
      const auto place = static_cast<Where>(where);
      if (is_possible(one, place) && coverage.count(one, place) == 0) function(one, place);
    }
  }
}

void print_gaps(const Coverage& coverage) {
  for_each_gap(coverage, [](Op op, Where where) {
    std::printf("never: %s %s\n", name_of(op), name_of(where));
  });
  for (int event = 0; event < kEvents; ++event)
    std::printf("%8llu %s\n", static_cast<unsigned long long>(coverage.events[event]),
                kEventNames[event]);
}

struct Part {
  std::string backend;
  int number;
};

class Chaos : public ::testing::TestWithParam<Part> {};

TEST_P(Chaos, BreaksNoPromise) {
  Batch batch{GetParam().backend, 0, kPrograms};
  batch.first = 1 + kPrograms * static_cast<std::uint64_t>(GetParam().number);
  const char* seed = std::getenv("SPATE_SEED");
  const char* seeds = std::getenv("SPATE_CHAOS_SEEDS");
  const char* backend = std::getenv("SPATE_CHAOS_BACKEND");
  const bool is_chosen = seed != nullptr || seeds != nullptr;
  if (is_chosen && GetParam().number % kParts != 0) return;
  if (backend != nullptr && GetParam().backend != backend) return;
  if (seed != nullptr) {
    batch.first = environment_number(seed, 1);
    batch.count = 1;
  } else if (seeds != nullptr) {
    const std::string text = seeds;
    batch.first = environment_number(text.c_str(), 1);
    batch.count = environment_number(text.substr(text.find(':') + 1).c_str(), 1);
  }
  if (std::getenv("SPATE_CHAOS_SURVEY") != nullptr) {
    EXPECT_TRUE(survey(batch));
    return;
  }
  auto coverage = std::make_unique<Coverage>();  // All zero.
  EXPECT_TRUE(run_batch(batch, coverage.get()));
  if (std::getenv("SPATE_CHAOS_COVERAGE") != nullptr) print_gaps(*coverage);
}

// In the callbacks that are common, everything is done; in the others, most.
TEST(ChaosCoverage, ReachesEveryCallbackWithEveryOperation) {
  constexpr Where kCommon[] = {Where::outside, Where::data, Where::end,     Where::closed,
                               Where::timer,   Where::post, Where::released};
  constexpr Where kRare[] = {Where::drained, Where::descriptors, Where::accept, Where::connected,
                             Where::packets, Where::open,        Where::drain,  Where::done};
  constexpr std::uint64_t kFewest = 3;  // Of everything that is to come about.
  if (std::getenv("SPATE_SEED") != nullptr || std::getenv("SPATE_CHAOS_SEEDS") != nullptr) return;
  auto coverage = std::make_unique<Coverage>();
  ASSERT_TRUE(run_batch({Loop::backends().front(), 1'000'000, kCovering}, coverage.get()));
  int gaps[kWheres] = {};
  for_each_gap(*coverage, [&](Op op, Where where) {
    ++gaps[static_cast<int>(where)];
    // Of processes there are few, and others need something that has to be there first.
    const bool is_dear =
        op == Op::spawn || op == Op::process || op == Op::relaying || op == Op::offloading;
    if (!is_dear && std::ranges::find(kCommon, where) != std::end(kCommon))
      ADD_FAILURE() << "never done: " << name_of(op) << " " << name_of(where);
  });
  for (const Where where : kRare)
    EXPECT_LT(gaps[static_cast<int>(where)], kOps / 2) << name_of(where);
  for (int event = 0; event < kEvents; ++event)
    EXPECT_GE(coverage->events[event], kFewest) << kEventNames[event];
}

std::vector<Part> parts() {
  std::vector<Part> all;
  for (const std::string_view backend : testing::backends_here()) {
    for (int i = 0; i < kParts; ++i)
      all.push_back({std::string(backend), static_cast<int>(all.size())});
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Part>& part) {
  return part.param.backend + std::to_string(part.param.number % kParts);
}

INSTANTIATE_TEST_SUITE_P(All, Chaos, ::testing::ValuesIn(parts()), name_of);

}  // namespace
}  // namespace spate::chaos
