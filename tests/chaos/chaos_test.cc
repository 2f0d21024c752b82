// Random programs of everything that the headers allow; README.md says how to read a failure.
//
// SPATE_SEED and SPATE_SEEDS select other programs than the usual, as in Worlds (support/seeds.h);
// SPATE_CHAOS_BACKEND=<name> runs them on one backend only; SPATE_CHAOS_SURVEY=1 continues after a
// failure, and counts; SPATE_CHAOS_TELL=1 prints a trace of each; SPATE_CHAOS_COVERAGE=1 prints the
// operations that were never done, and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "chaos/program.h"
#include "chaos/runner.h"
#include "chaos/tape.h"
#include "spate/loop.h"
#include "tests/support/backends.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seeds.h"

namespace spate::chaos {
namespace {

constexpr std::uint64_t kPrograms = 700;  // A part.
constexpr int kParts = 4;
constexpr std::uint64_t kCovering = 4500;  // To reach everything.

bool are_seeds_chosen() {
  return std::getenv("SPATE_SEED") != nullptr || std::getenv("SPATE_SEEDS") != nullptr;
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
void PrintTo(const Part& part, std::ostream* out) { *out << part.backend << part.number % kParts; }

class Chaos : public ::testing::TestWithParam<Part> {};

TEST_P(Chaos, RandomProgramsViolateNoInvariant) {
  Batch batch{GetParam().backend, 0, kPrograms};
  batch.first = 1 + kPrograms * static_cast<std::uint64_t>(GetParam().number);
  const char* backend = std::getenv("SPATE_CHAOS_BACKEND");
  if (are_seeds_chosen() && GetParam().number % kParts != 0) return;
  if (backend != nullptr && GetParam().backend != backend) return;
  if (are_seeds_chosen()) {
    const std::vector<std::uint64_t> seeds = testing::seeds(1);
    batch.first = seeds.front();
    batch.count = seeds.size();
  }
  if (std::getenv("SPATE_CHAOS_SURVEY") != nullptr) {
    EXPECT_TRUE(survey(batch));
    return;
  }
  auto coverage = std::make_unique<Coverage>();  // All zero.
  EXPECT_TRUE(run_batch(batch, coverage.get()));
  if (std::getenv("SPATE_CHAOS_COVERAGE") != nullptr) print_gaps(*coverage);
}

// Nearly every operation is done in each common callback; most are done in the others. A pair may
// be missing by chance, as the seeds of a loop on real sockets do not repeat exactly.
TEST(ChaosCoverage, ReachesEveryCallbackWithEveryOperation) {
  constexpr Where kCommon[] = {Where::outside, Where::data, Where::end,     Where::closed,
                               Where::timer,   Where::post, Where::released};
  constexpr Where kRare[] = {Where::drained, Where::descriptors, Where::accept, Where::connected,
                             Where::packets, Where::open,        Where::drain,  Where::done,
                             Where::dropped};
  constexpr std::uint64_t kFewest = 3;  // Every event must occur this often.
  constexpr int kMissingMost = 4;       // Pairs with a common callback.
  if (are_seeds_chosen()) return;
  if (testing::kIsSanitized) GTEST_SKIP() << "the other builds count the pairs";
  auto coverage = std::make_unique<Coverage>();
  ASSERT_TRUE(run_batch({Loop::backends().front(), 1'000'000, kCovering}, coverage.get()));
  int gaps[kWheres] = {};
  int missing = 0;
  std::string pairs;
  for_each_gap(*coverage, [&](Op op, Where where) {
    ++gaps[static_cast<int>(where)];
    // Few processes are spawned, and the other operations need an earlier one.
    const bool is_dear =
        op == Op::spawn || op == Op::process || op == Op::relaying || op == Op::offloading;
    if (is_dear || std::ranges::find(kCommon, where) == std::end(kCommon)) return;
    ++missing;
    pairs.append(name_of(op)).append(" ").append(name_of(where)).append("; ");
  });
  EXPECT_LE(missing, kMissingMost) << "never done: " << pairs;
  for (const Where where : kRare)
    EXPECT_LT(gaps[static_cast<int>(where)], kOps / 2) << name_of(where);
  for (int event = 0; event < kEvents; ++event)
    EXPECT_GE(coverage->events[event], kFewest) << kEventNames[event];
}

// Returns how many bytes more the last repetitions use than those before, at least: memory that is
// kept for the next use comes and goes. The first fifth is not counted.
std::size_t growth(const Program& program, std::size_t times) {
  const std::vector<std::size_t> used = repeat_program(program, Loop::backends().front(), times);
  const auto begin = used.begin() + static_cast<std::ptrdiff_t>(times / 5);
  const auto middle = used.begin() + static_cast<std::ptrdiff_t>(times / 5 * 3);
  const std::size_t most = *std::max_element(begin, middle);
  const std::size_t fewest = *std::min_element(middle, used.end());
  return fewest > most ? fewest - most : 0;
}

// A loop uses no more memory after many repetitions of a program than after a few. Tables that are
// filled as time passes grow for a while, so whatever grows is repeated more often.
TEST(ChaosMemory, DoesNotGrowWithRepetitions) {
  constexpr std::size_t kFew = 25;
  constexpr std::size_t kMany = 400;
  constexpr std::size_t kLeast = 16;  // Bytes that are lost each time, if any are.
  const bool is_one = std::getenv("SPATE_SEED") != nullptr;
  for (const std::uint64_t seed :
       is_one ? testing::seeds(1) : testing::seeds_from(2'000'000, 2'000'023)) {
    Tape tape(seed);
    Program program = make_program(tape);
    program.weather = Weather::fair;
    program.loop_goes_first = false;
    // The functions of on_signal() stay with the loop.
    std::erase_if(program.steps, [](const Step& step) { return step.op == Op::signal; });
    if (growth(program, kFew) < kFew / 5 * 2 * kLeast) continue;
    EXPECT_LT(growth(program, kMany), kMany / 5 * 2 * kLeast) << "seed " << seed;
  }
}

std::vector<Part> parts() {
  std::vector<Part> all;
  for (const std::string_view backend : testing::backends_here()) {
    for (int i = 0; i < kParts; ++i)
      all.push_back({std::string(backend), static_cast<int>(all.size())});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Chaos, ::testing::ValuesIn(parts()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace spate::chaos
