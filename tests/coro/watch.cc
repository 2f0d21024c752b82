// The awaitable of a Watch, and its cancellation.
#include "spate/coro/watch.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "tests/support/own_tree.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

class CoroWatch : public ::testing::Test {
 protected:
  CoroWatch() : loop_(must(Loop::create())) {}

  coro::Watch start() { return must(coro::Watch::start(*loop_, tree_.root())); }

  OwnTree tree_;
  std::unique_ptr<Loop> loop_;
};

// Waits until `path` was written. Returns the error if the watch ends.
Task<Result<void>> written(coro::Watch* watch, std::string path) {
  for (;;) {
    const auto events = co_await coro::or_return(watch->next());
    for (const WatchEvent& event : events) {
      if (event.change == Change::written && event.path == path) co_return Result<void>();
    }
  }
}

Task<Result<void>> ready(coro::Watch* watch) {
  const auto events = co_await coro::or_return(watch->next());
  EXPECT_EQ(events.size(), 1u);
  EXPECT_EQ(events.front().change, Change::ready);
  co_return Result<void>();
}

TEST_F(CoroWatch, EventsAreReturnedInTheirOrder) {
  coro::Watch watch = start();
  EXPECT_EQ(std::string(watch.root()) + "/", tree_.root());
  EXPECT_TRUE(coro::run(*loop_, ready(&watch)));
  tree_.write("a", "1");
  EXPECT_TRUE(coro::run(*loop_, written(&watch, "a")));
  tree_.write("b", "2");
  coro::Watch moved = std::move(watch);
  EXPECT_TRUE(coro::run(*loop_, written(&moved, "b")));
}

TEST_F(CoroWatch, WatchWithoutWaiterKeepsNoLoopAlive) {
  coro::Watch watch = start();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
}

TEST_F(CoroWatch, CancelledWaitLosesNothing) {
  coro::Watch watch = start();
  EXPECT_TRUE(coro::run(*loop_, ready(&watch)));
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    {
      Scope scope(*loop_);
      scope.spawn(written(&watch, "none"));
      EXPECT_FALSE(loop_->run(Run::no_wait));
    }
    {
      Scope scope(*loop_);
      scope.spawn(written(&watch, "none"));
      tree_.write(name, "1");
    }
    EXPECT_TRUE(coro::run(*loop_, written(&watch, name)));
  }
}

TEST_F(CoroWatch, EndIsReturnedByEachCall) {
  coro::Watch watch = start();
  EXPECT_TRUE(coro::run(*loop_, ready(&watch)));
  std::filesystem::remove_all(tree_.root());
  for (int i = 0; i < 3; ++i) {
    const Result<void> result = coro::run(*loop_, written(&watch, "a"));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error(), std::error_code(ENOENT, std::system_category()));
  }
}

TEST_F(CoroWatch, ErrorOfStartIsReturned) {
  const Result<coro::Watch> watch = coro::Watch::start(*loop_, tree_.at("none"));
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error(), std::error_code(ENOENT, std::system_category()));
}

}  // namespace
}  // namespace spate::testing
