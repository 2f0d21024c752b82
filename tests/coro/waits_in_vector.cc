// when_all() and when_any() of tasks in a vector.
#include <gtest/gtest.h>

#include <vector>

#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "tests/coro/mark.h"
#include "tests/support/scripted.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

std::error_code broken() { return std::make_error_code(std::errc::io_error); }

Task<int> number(int value, Nanos time, int* live) {
  const Mark mark(live);
  if (time > 0ns) co_await coro::sleep(time);
  co_return value;
}
Task<Result<int>> result(int value, Nanos time, int* live) {
  const Mark mark(live);
  if (time > 0ns) co_await coro::sleep(time);
  if (value < 0) co_return std::unexpected(broken());
  co_return value;
}
Task<void> nothing(Nanos time, int* live) {
  const Mark mark(live);
  co_await coro::sleep(time);
}
Task<Result<void>> perhaps(bool works, int* live) {
  const Mark mark(live);
  co_await coro::next_turn();
  if (!works) co_return std::unexpected(broken());
  co_return Result<void>();
}

class CoroWaitsInVector : public ::testing::Test {
 protected:
  ~CoroWaitsInVector() override { EXPECT_EQ(live_, 0); }

  Loop& loop() { return *scripted_.loop; }

  ScriptedLoop scripted_;
  int live_ = 0;
};

TEST_F(CoroWaitsInVector, ResultsOfWhenAllAreInTaskOrder) {
  const auto wait = [](int* live) -> Task<std::vector<int>> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 100; ++i) tasks.push_back(number(i, 1ms * ((i * 37) % 50), live));
    co_return co_await coro::when_all(std::move(tasks));
  };
  const std::vector<int> values = coro::run(loop(), wait(&live_));
  ASSERT_EQ(values.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], i);
}

TEST_F(CoroWaitsInVector, EmptyWhenAllEndsAtOnce) {
  const auto wait = []() -> Task<std::size_t> {
    const auto none = co_await coro::when_all(std::vector<Task<int>>());
    const Result<std::vector<int>> no_result =
        co_await coro::when_all(std::vector<Task<Result<int>>>());
    EXPECT_TRUE(no_result && no_result->empty());
    co_return none.size();
  };
  EXPECT_EQ(coro::run(loop(), wait()), 0u);
}

TEST_F(CoroWaitsInVector, FirstErrorEndsWhenAllAndDestroysOthers) {
  for (const Nanos time : {Nanos{0}, Nanos{1ms}}) {
    const auto wait = [](Nanos when, int* live) -> Task<bool> {
      std::vector<Task<Result<int>>> tasks;
      tasks.push_back(result(1, 0ns, live));
      tasks.push_back(result(2, 1h, live));
      tasks.push_back(result(-1, when, live));
      tasks.push_back(result(3, 1h, live));
      auto&& operation = coro::when_all(std::move(tasks));
      const Result<std::vector<int>> all = co_await operation;
      EXPECT_FALSE(all);
      EXPECT_EQ(all ? std::error_code() : all.error(), broken());
      EXPECT_EQ(*live, 0);
      co_return true;
    };
    const Nanos before = loop().now();
    EXPECT_TRUE(coro::run(loop(), wait(time, &live_)));
    EXPECT_LT(loop().now(), before + 1s);
  }
}

TEST_F(CoroWaitsInVector, VoidTasksYieldMonostateInWhenAll) {
  const auto wait = [](int* live) -> Task<bool> {
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(nothing(1ms * i, live));
    const auto all = co_await coro::when_all(std::move(tasks));
    EXPECT_EQ(all.size(), 3u);
    std::vector<Task<Result<void>>> more;
    for (int i = 0; i < 3; ++i) more.push_back(perhaps(i != 1, live));
    const auto failed = co_await coro::when_all(std::move(more));
    EXPECT_EQ(failed ? std::error_code() : failed.error(), broken());
    co_return true;
  };
  EXPECT_TRUE(coro::run(loop(), wait(&live_)));
}

TEST_F(CoroWaitsInVector, WhenAnyReturnsNumberOfFirstTask) {
  const auto wait = [](int* live) -> Task<bool> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 10; ++i) tasks.push_back(number(i, i == 7 ? 1ms : 1h, live));
    auto&& operation = coro::when_any(std::move(tasks));
    const auto first = co_await operation;
    EXPECT_EQ(first.number, 7u);
    EXPECT_EQ(first.result, 7);
    EXPECT_EQ(*live, 0);
    std::vector<Task<void>> others;
    others.push_back(nothing(1h, live));
    others.push_back(nothing(1ms, live));
    const auto second = co_await coro::when_any(std::move(others));
    EXPECT_EQ(second.number, 1u);
    co_return true;
  };
  EXPECT_TRUE(coro::run(loop(), wait(&live_)));
}

TEST_F(CoroWaitsInVector, TaskThatEndsAtOnceKeepsOthersFromStarting) {
  const auto wait = [](int* live) -> Task<bool> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(number(i, i == 1 ? 0ns : 1h, live));
    const auto first = co_await coro::when_any(std::move(tasks));
    EXPECT_EQ(first.number, 1u);
    co_return true;
  };
  const Nanos before = loop().now();
  EXPECT_TRUE(coro::run(loop(), wait(&live_)));
  EXPECT_EQ(loop().now(), before);
}

TEST_F(CoroWaitsInVector, CancelledWaitDestroysItsTasks) {
  const auto wait = [](int* live) -> Task<void> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(number(i, 1h, live));
    co_await coro::when_all(std::move(tasks));
    ADD_FAILURE() << "it went on";
  };
  Scope scope(loop());
  scope.spawn(wait(&live_));
  EXPECT_FALSE(loop().run(Run::no_wait));
  EXPECT_EQ(live_, 4);
  scope.cancel();
  EXPECT_EQ(live_, 0);
}

}  // namespace
}  // namespace spate::testing
