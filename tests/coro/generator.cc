// Generators: their values and order, and the destruction of generators and their callers.
#include "spate/coro/generator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "tests/coro/mark.h"
#include "tests/support/scripted.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Generator;
using coro::Scope;
using coro::Task;

struct CoroGenerator : ::testing::Test {
  Loop& loop() { return *scripted.loop; }
  void turns(int count = 3) {
    for (int i = 0; i < count; ++i) EXPECT_FALSE(loop().run(Run::no_wait));
  }
  void pass(Nanos time) {
    scripted.clock.advance(time);
    turns();
  }

  ScriptedLoop scripted;
  int live = 0;
};

Generator<int> count_to(int last, int* live) {
  const Mark mark(live);
  for (int i = 1; i <= last; ++i) co_yield i;
}
Generator<int> count_slowly_to(int last, int* live) {
  const Mark mark(live);
  for (int i = 1; i <= last; ++i) {
    co_await coro::sleep(1ms);
    co_yield i;
  }
}
template <class T>
Task<std::vector<T>> all_of(Generator<T> values) {
  std::vector<T> all;
  for (;;) {
    std::optional<T> value = co_await values.next();
    if (!value) break;
    all.push_back(*std::move(value));
  }
  const std::optional<T> nothing = co_await values.next();
  EXPECT_FALSE(nothing || values);
  co_return all;
}

TEST_F(CoroGenerator, ValuesArriveInOrderFollowedByNone) {
  EXPECT_EQ(coro::run(loop(), all_of(count_to(3, &live))), (std::vector{1, 2, 3}));
  EXPECT_EQ(coro::run(loop(), all_of(count_to(0, &live))), std::vector<int>());
  EXPECT_EQ(live, 0);
}

TEST_F(CoroGenerator, GeneratorMayWaitBetweenValues) {
  std::vector<int> all;
  const auto collect = [](Generator<int> values, std::vector<int>* into) -> Task<void> {
    *into = co_await all_of(std::move(values));
  };
  Scope scope(loop());
  scope.spawn(collect(count_slowly_to(3, &live), &all));
  for (int i = 0; i < 3; ++i) pass(1ms);
  EXPECT_EQ(all, (std::vector{1, 2, 3}));
  EXPECT_TRUE(scope.empty());
  EXPECT_EQ(live, 0);
}

TEST_F(CoroGenerator, GeneratorRunsOnlyOnDemand) {
  int made = 0;
  const auto make = [](int* count) -> Generator<int> {
    for (;;) co_yield ++*count;
  };
  const auto take_two = [](Generator<int>* values) -> Task<int> {
    const std::optional<int> one = co_await values->next();
    const std::optional<int> two = co_await values->next();
    co_return one.value_or(0) * 10 + two.value_or(0);
  };
  Generator<int> values = make(&made);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(coro::run(loop(), take_two(&values)), 12);
  EXPECT_EQ(made, 2);
}

// Each call comes from another task and scope.
TEST_F(CoroGenerator, DifferentTasksMayCallNextInTurn) {
  const auto take = [](Generator<int>* values) -> Task<int> {
    const std::optional<int> value = co_await values->next();
    co_return value.value_or(0);
  };
  const std::unique_ptr<Loop> loop = must(Loop::create());
  Generator<int> values = count_slowly_to(4, &live);
  EXPECT_EQ(coro::run(*loop, take(&values)), 1);
  EXPECT_EQ(coro::run(*loop, take(&values)), 2);
  Generator<int> moved = std::move(values);
  EXPECT_FALSE(values);
  EXPECT_EQ(coro::run(*loop, take(&moved)), 3);
  EXPECT_EQ(live, 1);
  moved = count_to(9, &live);
  EXPECT_EQ(live, 0);
  EXPECT_EQ(coro::run(*loop, take(&moved)), 1);
}

TEST_F(CoroGenerator, MillionValuesUseConstantStack) {
  const auto sum = [](Generator<int> values) -> Task<long> {
    long total = 0;
    for (;;) {
      const std::optional<int> value = co_await values.next();
      if (!value) co_return total;
      total += *value;
    }
  };
  EXPECT_EQ(coro::run(loop(), sum(count_to(1'000'000, &live))), 500'000'500'000);
}

Generator<std::string> doubled(Generator<std::string> values) {
  for (;;) {
    const std::optional<std::string> value = co_await values.next();
    if (!value) co_return;
    co_await coro::next_turn();
    co_yield *value + *value;
  }
}
Generator<std::string> letters(int* live) {
  const Mark mark(live);
  co_yield std::string("a");
  const std::string name = "b";
  co_yield name;
}
TEST_F(CoroGenerator, GeneratorMayUseAnotherGenerator) {
  EXPECT_EQ(coro::run(loop(), all_of(doubled(doubled(letters(&live))))),
            (std::vector<std::string>{"aaaa", "bbbb"}));
  EXPECT_EQ(live, 0);
}

TEST_F(CoroGenerator, MoveOnlyValuesAreMoved) {
  const auto make = []() -> Generator<std::unique_ptr<int>> {
    auto named = std::make_unique<int>(1);
    co_yield std::move(named);
    co_yield std::make_unique<int>(2);
  };
  const auto all = coro::run(loop(), all_of(make()));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(*all[0] + *all[1], 3);
}

// ---- errors

Generator<Result<std::string>> lines_of(coro::Stream* stream, int* live) {
  const Mark mark(live);
  for (;;) {
    const Bytes line = co_await coro::or_return(stream->read(Delimiter{}));
    co_yield std::string(text_of(line));
  }
}
Task<std::error_code> read_lines(coro::Stream* stream, std::vector<std::string>* into, int* live) {
  Generator<Result<std::string>> lines = lines_of(stream, live);
  for (;;) {
    const Result<std::optional<std::string>> line = co_await lines.next();
    if (!line) {
      EXPECT_FALSE(lines) << "it goes on";
      const Result<std::optional<std::string>> behind = co_await lines.next();
      EXPECT_TRUE(behind && !*behind);
      co_return line.error();
    }
    if (!*line) co_return std::error_code();
    into->push_back(**line);
  }
}
TEST_F(CoroGenerator, OrReturnEndsGeneratorWithError) {
  const std::unique_ptr<Loop> loop = must(Loop::create());
  auto pair = must(spate::Stream::memory_pair(*loop));
  coro::Stream stream(std::move(pair.second));
  pair.first.write("one\ntwo\n");
  pair.first.end();
  std::vector<std::string> lines;
  EXPECT_EQ(coro::run(*loop, read_lines(&stream, &lines, &live)), Error::ended);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(live, 0);
}

Generator<Result<int>> has_trouble(int* live) {
  const Mark mark(live);
  co_yield 1;
  co_yield std::unexpected(std::make_error_code(std::errc::io_error));
  co_await coro::next_turn();
  co_yield 2;
}
Task<Result<int>> sum_in_spite(Generator<Result<int>> values) {
  int sum = 0;
  int errors = 0;
  for (;;) {
    const Result<std::optional<int>> value = co_await values.next();
    if (!value) ++errors;
    if (value && !*value) break;
    if (value) sum += **value;
  }
  co_return sum * 10 + errors;
}
Task<Result<int>> sum_or_return(Generator<Result<int>> values) {
  int sum = 0;
  for (;;) {
    const std::optional<int> value = co_await coro::or_return(values.next());
    if (!value) co_return sum;
    sum += *value;
  }
}
TEST_F(CoroGenerator, YieldedErrorIsOrdinaryResult) {
  EXPECT_EQ(coro::run(loop(), sum_in_spite(has_trouble(&live))), 31);
  EXPECT_EQ(coro::run(loop(), sum_or_return(has_trouble(&live))).error(), std::errc::io_error);
  EXPECT_EQ(live, 0);
}

TEST_F(CoroGenerator, ResultIsErrorWithoutMemory) {
  const auto make = []() -> Generator<Result<int>> {
    std::byte large[10'000] = {};  // The thread never keeps such a large frame.
    co_yield static_cast<int>(large[5000]);
    large[5001] = {};
  };
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  std::optional<Generator<Result<int>>> values;
  {
    const FaultScope faults(plan);
    values.emplace(make());
  }
  EXPECT_FALSE(*values);
  EXPECT_EQ(coro::run(loop(), sum_or_return(*std::move(values))).error(),
            std::errc::not_enough_memory);
}

// ---- giving up

TEST_F(CoroGenerator, GeneratorMayBeDestroyedBetweenTwoValues) {
  const auto take_one = [](Generator<int> values) -> Task<int> {
    const std::optional<int> value = co_await values.next();
    co_return value.value_or(0);
  };
  EXPECT_EQ(coro::run(loop(), take_one(count_to(5, &live))), 1);
  EXPECT_EQ(live, 0);
}

TEST_F(CoroGenerator, CancelledNextEndsGenerator) {
  const auto impatient = [](Generator<int>* values) -> Task<int> {
    const auto next = [](Generator<int>* of) -> Task<std::optional<int>> {
      co_return co_await of->next();
    };
    int got = 0;
    for (int i = 0; i < 3; ++i) {
      const Nanos time = i == 1 ? 500us : 1h;
      const auto value = co_await coro::with_deadline(time, next(values));
      if (value && *value) ++got;
    }
    co_return got;
  };
  Generator<int> values = count_slowly_to(5, &live);
  const std::unique_ptr<Loop> loop = must(Loop::create());
  EXPECT_EQ(coro::run(*loop, impatient(&values)), 1);
  EXPECT_FALSE(values);
  EXPECT_EQ(live, 0);
}

TEST_F(CoroGenerator, StoppedScopeEndsGenerator) {
  const auto ask = [](Generator<Result<int>> values, std::error_code* error) -> Task<void> {
    for (;;) {
      const Result<std::optional<int>> value = co_await coro::until_stop(values.next());
      if (value) continue;
      *error = value.error();
      co_return;
    }
  };
  const auto tick = [](int* count) -> Generator<Result<int>> {
    const Mark mark(count);
    for (;;) {
      co_await coro::sleep(1ms);
      co_yield 1;
    }
  };
  std::error_code error;
  Scope scope(loop());
  scope.spawn(ask(tick(&live), &error));
  pass(1ms);
  pass(1ms);
  EXPECT_FALSE(error);
  scope.stop();
  turns();
  EXPECT_EQ(error, std::errc::operation_canceled);
  EXPECT_EQ(live, 0);
}

}  // namespace
}  // namespace spate::testing
