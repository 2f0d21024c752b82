// Destructors of coroutines' locals that use the Scope, and results at its end.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "spate/coro/run.h"
#include "spate/coro/scope.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "spate/timer.h"
#include "support/scripted.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

// Calls a function in its destructor.
struct AtEnd {
  std::function<void()> act;
  ~AtEnd() { act(); }
};

Task<void> sleeper_that_acts(std::function<void()> act) {
  const AtEnd last{std::move(act)};
  co_await coro::sleep(1h);
}

class ActingDestructor : public ::testing::Test {
 protected:
  Loop& loop() { return *scripted_.loop; }
  void turns() {
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(loop().run(Run::no_wait));
  }

  ScriptedLoop scripted_;
  std::unique_ptr<Scope> scope_ = std::make_unique<Scope>(loop());
  bool has_gone_on_ = false;
};

Task<void> until_stopped(std::function<void()> act, bool* has_gone_on) {
  const std::string local(100, 'x');
  Task<void> inner = sleeper_that_acts(std::move(act));
  const Result<void> result = co_await coro::until_stop(std::move(inner));
  *has_gone_on = !result && local.size() == 100;
}

TEST_F(ActingDestructor, CancelsItsScopeDuringStop) {
  scope_->spawn(until_stopped([this] { scope_->cancel(); }, &has_gone_on_));
  scope_->stop();
  EXPECT_TRUE(scope_->empty());
  turns();
  EXPECT_FALSE(has_gone_on_);
}

TEST_F(ActingDestructor, DestroysItsScopeDuringStop) {
  scope_->spawn(until_stopped([this] { scope_.reset(); }, &has_gone_on_));
  scope_->stop();
  EXPECT_EQ(scope_, nullptr);
  turns();
  EXPECT_FALSE(has_gone_on_);
}

TEST_F(ActingDestructor, StopsItsScopeDuringStop) {
  scope_->spawn(until_stopped([this] { scope_->stop(); }, &has_gone_on_));
  scope_->stop();
  turns();
  EXPECT_TRUE(has_gone_on_);
  EXPECT_TRUE(scope_->empty());
}

TEST_F(ActingDestructor, RunsLoopDuringStop) {
  scope_->spawn(until_stopped([this] { turns(); }, &has_gone_on_));
  scope_->stop();
  turns();
  EXPECT_TRUE(has_gone_on_);
}

Task<void> join_within_5ms(Scope* scope, bool* is_whole) {
  *is_whole = co_await scope->join(5ms);
}

// The timer of join() cancelled the scope after its destruction.
TEST_F(ActingDestructor, ScopeIsDestroyedInTurnInWhichGraceEnds) {
  bool is_whole = true;
  scope_->spawn(sleeper_that_acts([] {}));
  Scope outer(loop());
  Timer destroys(loop(), [this] { scope_.reset(); });
  destroys.start(5ms);
  outer.spawn(join_within_5ms(scope_.get(), &is_whole));
  scripted_.clock.advance(10ms);
  turns();
  EXPECT_EQ(scope_, nullptr);
  EXPECT_FALSE(is_whole);
  EXPECT_TRUE(outer.empty());
}

TEST_F(ActingDestructor, TasksEndInTurnInWhichGraceEnds) {
  const auto short_one = []() -> Task<void> { co_await coro::sleep(5ms); };
  bool is_whole = false;
  scope_->spawn(short_one());
  Scope outer(loop());
  outer.spawn(join_within_5ms(scope_.get(), &is_whole));
  scripted_.clock.advance(10ms);
  turns();
  EXPECT_TRUE(is_whole) << "nothing was cancelled";
  EXPECT_TRUE(outer.empty());
}

// The other branch of a task is due while the task is being destroyed. It must not be resumed.
TEST_F(ActingDestructor, RunsLoopDuringCancel) {
  const auto due_branch = [](bool* has_gone_on) -> Task<void> {
    co_await coro::sleep(1ms);
    *has_gone_on = true;
  };
  const auto both = [](Task<void> one, Task<void> other) -> Task<void> {
    co_await coro::when_all(std::move(one), std::move(other));
  };
  Task<void> due = due_branch(&has_gone_on_);
  Task<void> acting = sleeper_that_acts([this] {
    scripted_.clock.advance(1s);
    turns();
  });
  scope_->spawn(both(std::move(acting), std::move(due)));
  scope_->cancel();
  EXPECT_FALSE(has_gone_on_);
  EXPECT_TRUE(scope_->empty());
}

// A callback runs the loop, and the outer task ends in this run().
class NestedRun : public ActingDestructor {
 protected:
  NestedRun() { keeps_alive_.start(1h); }

  static Task<int> later(Nanos delay, int value) {
    co_await coro::sleep(delay);
    co_return value;
  }

  Timer keeps_alive_{loop(), [] {}};
  const Nanos begin_ = loop().now();
};

TEST_F(NestedRun, IsNotEndedByOuterTask) {
  Nanos nested_end{0};
  const auto run_nested = [&] {
    loop().run_for(300ms);
    nested_end = loop().now() - begin_;
  };
  Timer nests(loop(), [&run_nested] { run_nested(); });
  nests.start(10ms);
  EXPECT_EQ(coro::run(loop(), later(50ms, 7)), 7);
  EXPECT_EQ(nested_end, 310ms);
  EXPECT_EQ(loop().now() - begin_, 310ms);
  EXPECT_EQ(loop().active_count(), 1) << "keeps_alive_";
}

TEST_F(NestedRun, ReturnsItsOwnResult) {
  int inner = 0;
  const auto run_nested = [&] { inner = coro::run(loop(), later(200ms, 3)); };
  Timer nests(loop(), [&run_nested] { run_nested(); });
  nests.start(10ms);
  EXPECT_EQ(coro::run(loop(), later(50ms, 8)), 8);
  EXPECT_EQ(inner, 3);
  EXPECT_EQ(loop().now() - begin_, 210ms);
}

TEST_F(NestedRun, MayBeNestedTwice) {
  std::vector<int> order;
  const auto run_innermost = [&] {
    loop().run_for(300ms);
    order.push_back(3);
  };
  const auto run_nested = [&] { order.push_back(coro::run(loop(), later(100ms, 2))); };
  Timer innermost(loop(), [&run_innermost] { run_innermost(); });
  innermost.start(20ms);
  Timer nests(loop(), [&run_nested] { run_nested(); });
  nests.start(10ms);
  order.push_back(coro::run(loop(), later(50ms, 1)));
  EXPECT_EQ(order, (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(loop().now() - begin_, 320ms);
}

}  // namespace
}  // namespace spate::testing
