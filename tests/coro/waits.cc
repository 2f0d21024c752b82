// The guarantees of waits, one at a time.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/fault.h"
#include "base/memory.h"
#include "spate/coro/channel.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "tests/coro/kept.h"
#include "tests/coro/mark.h"
#include "tests/support/scripted.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

std::error_code trouble() { return std::make_error_code(std::errc::io_error); }

Task<int> sleeper(Nanos time, int* live) {
  const Mark mark(live);
  co_await coro::sleep(time);
  co_return 7;
}
Task<void> sleeper_of_none() { co_await coro::next_turn(); }
Task<Result<int>> failing(Nanos time) {
  if (time > 0ns) co_await coro::sleep(time);
  co_return std::unexpected(trouble());
}
Task<Result<void>> fails_too(Nanos time) {
  co_await coro::or_return(failing(time));
  ADD_FAILURE() << "it went on";
  co_return Result<void>();
}
Task<Result<int>> succeeding(Nanos time, int* live) {
  const Mark mark(live);
  co_await coro::sleep(time);
  co_return 7;
}

class CoroWaits : public ::testing::Test {
 protected:
  Loop& loop() { return *scripted_.loop; }
  void turns(int count = 3) {
    for (int i = 0; i < count; ++i) EXPECT_FALSE(loop().run(Run::no_wait));
  }

  ScriptedLoop scripted_;
  int live_ = 0;
};

TEST_F(CoroWaits, OtherTasksAreDestroyedBeforeWhenAnyReturns) {
  const auto race = [](int* live) -> Task<void> {
    auto&& wait = coro::when_any(sleeper(1ms, live), sleeper(1h, live), sleeper(2h, live));
    const auto first = co_await wait;
    EXPECT_EQ(first.index(), 0u);
    EXPECT_EQ(*live, 0);
  };
  coro::run(loop(), race(&live_));
}

TEST_F(CoroWaits, TaskThatEndsAtOnceKeepsOthersFromStarting) {
  const auto race = [](int* live) -> Task<void> {
    const auto first = co_await coro::when_any(failing(0ns), sleeper(1h, live));
    EXPECT_EQ(first.index(), 0u);
  };
  const Nanos before = loop().now();
  coro::run(loop(), race(&live_));
  EXPECT_EQ(loop().now(), before);
}

TEST_F(CoroWaits, FirstErrorEndsWhenAll) {
  const auto both = [](int* live) -> Task<void> {
    auto&& wait = coro::when_all(failing(1ms), succeeding(1h, live));
    const auto result = co_await wait;
    EXPECT_EQ(result.error(), trouble());
    EXPECT_EQ(*live, 0);
  };
  const Nanos before = loop().now();
  coro::run(loop(), both(&live_));
  EXPECT_EQ(loop().now() - before, 1ms);
}

TEST_F(CoroWaits, OrReturnEndsCoroutineAndItsCallers) {
  const auto above = []() -> Task<Result<void>> {
    co_await coro::or_return(fails_too(1ms));
    ADD_FAILURE() << "it went on";
    co_return Result<void>();
  };
  EXPECT_EQ(coro::run(loop(), above()).error(), trouble());
  EXPECT_EQ(coro::run(loop(), fails_too(0ns)).error(), trouble());
}

TEST_F(CoroWaits, CancelledWaiterIsWokenOnce) {
  coro::Event bell;
  coro::Channel<int> channel(1);
  Scope scope(loop());
  const auto waits = [](coro::Event* for_bell) -> Task<void> {
    co_await for_bell->wait();
    ADD_FAILURE() << "it went on";
  };
  const auto receives = [](coro::Channel<int>* from) -> Task<void> {
    co_await from->receive();
    ADD_FAILURE() << "it went on";
  };
  const auto cancels = [](Scope* own, coro::Event* rings,
                          coro::Channel<int>* closes) -> Task<void> {
    own->cancel();
    rings->set();
    closes->close();
    co_await coro::next_turn();
  };
  const auto all = [](Task<void> one, Task<void> other, Task<void> last) -> Task<void> {
    co_await coro::when_all(std::move(one), std::move(other), std::move(last));
  };
  scope.spawn(all(waits(&bell), receives(&channel), cancels(&scope, &bell, &channel)));
  EXPECT_TRUE(scope.empty());
}

// ---- scopes

TEST_F(CoroWaits, ScopeReportsErrorsOfItsTasks) {
  Scope scope(loop());
  std::vector<std::error_code> told;
  scope.on_error([&](std::error_code error) { told.push_back(error); });
  EXPECT_TRUE(scope.spawn(fails_too(1ms)));
  EXPECT_TRUE(scope.spawn(fails_too(2ms)));
  EXPECT_FALSE(loop().run());
  EXPECT_EQ(told, (std::vector{trouble(), trouble()}));
  EXPECT_TRUE(scope.empty());
}

TEST_F(CoroWaits, JoinReturnsFirstErrorWithoutHandler) {
  Scope scope(loop());
  scope.spawn(fails_too(1ms));
  const auto join = [](Scope* others) -> Task<Result<void>> { co_return co_await others->join(); };
  EXPECT_EQ(coro::run(loop(), join(&scope)).error(), trouble());
  EXPECT_TRUE(coro::run(loop(), join(&scope))) << "told once";
}

Task<void> marked(Nanos time, int* live) {
  const Mark mark(live);
  co_await coro::sleep(time);
}

TEST_F(CoroWaits, JoinWithGracePeriodStopsThenCancels) {
  Scope scope(loop());
  scope.spawn(marked(1ms, &live_));
  scope.spawn(marked(1h, &live_));
  const auto join = [](Scope* others) -> Task<bool> { co_return co_await others->join(5ms); };
  const Nanos before = loop().now();
  EXPECT_FALSE(coro::run(loop(), join(&scope)));
  EXPECT_EQ(loop().now() - before, 5ms);
  EXPECT_EQ(live_, 0);
  EXPECT_FALSE(scope.spawn(marked(1ms, &live_))) << "it is stopping";
}

TEST_F(CoroWaits, LoopDestructionCancelsTasks) {
  Scope scope(loop());
  scope.spawn(marked(1h, &live_));
  EXPECT_EQ(live_, 1);
  scripted_.loop.reset();
  EXPECT_EQ(live_, 0);
  EXPECT_FALSE(scope.spawn(marked(1h, &live_)));
}

TEST_F(CoroWaits, TaskThatCancelsItselfEndsAtItsNextSuspension) {
  Scope scope(loop());
  bool has_gone_on = false;
  const auto suicide = [](Scope* own, bool* gone_on, int* live) -> Task<void> {
    const Mark mark(live);
    co_await coro::next_turn();
    own->cancel();
    *gone_on = true;
    co_await coro::next_turn();
    ADD_FAILURE() << "resumed";
  };
  scope.spawn(suicide(&scope, &has_gone_on, &live_));
  turns();
  EXPECT_TRUE(has_gone_on);
  EXPECT_EQ(live_, 0);
  EXPECT_TRUE(scope.empty());
}

// The scope is destroyed while one branch runs, and another waits in until_stop().
TEST_F(CoroWaits, TaskMayDestroyItsScopeWhileAnotherBranchWaits) {
  auto scope = std::make_unique<Scope>(loop());
  const auto waits = [](int* live) -> Task<Result<int>> {
    Result<int> result = co_await coro::until_stop(succeeding(1h, live));
    co_return result;
  };
  const auto destroys = [](std::unique_ptr<Scope>* own) -> Task<Result<int>> {
    co_await coro::next_turn();
    own->reset();
    co_return 7;
  };
  const auto both = [waits, destroys](std::unique_ptr<Scope>* own, int* live) {
    return [](Task<Result<int>> one, Task<Result<int>> other) -> Task<void> {
      co_await coro::when_all(std::move(one), std::move(other));
      ADD_FAILURE() << "resumed";
    }(waits(live), destroys(own));
  };
  scope->spawn(both(&scope, &live_));
  EXPECT_EQ(live_, 1);
  turns();
  EXPECT_EQ(scope, nullptr);
  EXPECT_EQ(live_, 0);
}

// stop() must not destroy the task that called it.
Task<Result<int>> stops_its_scope(Scope* scope, int* live) {
  const Mark mark(live);
  scope->stop();
  EXPECT_EQ(*live, 1) << "destroyed while it runs";
  co_await coro::sleep(1h);
  ADD_FAILURE() << "it went on";
  co_return 7;
}
Task<void> until_it_stops_itself(Scope* scope, int* live, std::error_code* error) {
  co_await coro::next_turn();
  Task<Result<int>> task = stops_its_scope(scope, live);
  const Result<int> result = co_await coro::until_stop(std::move(task));
  if (!result) *error = result.error();
}
Task<Result<int>> sleeps_and_stops(Scope* scope, int* live) {
  const Mark mark(live);
  co_await coro::next_turn();
  scope->stop();
  EXPECT_EQ(*live, 1) << "destroyed while it runs";
  co_await coro::sleep(1h);
  ADD_FAILURE() << "it went on";
  co_return 7;
}
Task<void> until_it_stops_later(Scope* scope, int* live, std::error_code* error) {
  Task<Result<int>> task = sleeps_and_stops(scope, live);
  const Result<int> result = co_await coro::until_stop(std::move(task));
  if (!result) *error = result.error();
}

TEST_F(CoroWaits, TaskThatStopsItsScopeIsCancelledAtItsNextWait) {
  for (const auto task : {until_it_stops_itself, until_it_stops_later}) {
    std::error_code error;
    Scope scope(loop());
    scope.spawn(task(&scope, &live_, &error));
    turns(5);
    EXPECT_EQ(live_, 0);
    EXPECT_TRUE(scope.empty());
    EXPECT_EQ(error, std::errc::operation_canceled);
  }
}

// The task that destroys the scope runs on. Its sibling is detached from the scope only later, when
// a new scope is in the same place.
Task<Result<void>> waits_until_stop(std::error_code* error) {
  const Result<std::error_code> result = co_await coro::until_stop(coro::sleep(1h));
  if (!result) *error = result.error();
  co_return Result<void>();
}
Task<Result<void>> replaces_its_scope(Loop* loop, std::optional<Scope>* own,
                                      std::error_code* error) {
  co_await coro::next_turn();
  own->emplace(*loop);
  (*own)->spawn(waits_until_stop(error));
  co_await coro::next_turn();
  ADD_FAILURE() << "resumed";
  co_return Result<void>();
}
Task<void> both_of(Task<Result<void>> one, Task<Result<void>> other) {
  co_await coro::when_all(std::move(one), std::move(other));
  ADD_FAILURE() << "resumed";
}
TEST_F(CoroWaits, WaiterOfDestroyedScopeDoesNotAffectItsReplacement) {
  std::error_code of_the_first;
  std::error_code of_the_next;
  std::optional<Scope> scope(std::in_place, loop());
  Task<Result<void>> waiting = waits_until_stop(&of_the_first);
  Task<Result<void>> replacing = replaces_its_scope(&loop(), &scope, &of_the_next);
  scope->spawn(both_of(std::move(waiting), std::move(replacing)));
  turns();
  EXPECT_EQ(scope->size(), 1u);
  scope->stop();
  turns();
  EXPECT_FALSE(of_the_first);
  EXPECT_EQ(of_the_next, std::errc::operation_canceled);
}

TEST_F(CoroWaits, TaskIsEmptyAndNotSpawnedWithoutMemory) {
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const auto large = [](int* live) -> Task<Result<int>> {  // A size that is never kept.
    std::array<char, 5000> room{};
    const Mark mark(live);
    co_await coro::sleep(1ms);
    co_return room[0];
  };
  const auto asks = [](Task<Result<int>> task) -> Task<Result<int>> {
    Result<int> result = co_await std::move(task);
    co_return result;
  };
  std::optional<Task<Result<int>>> task;
  {
    const FaultScope faults(plan);
    task.emplace(large(&live_));
  }
  EXPECT_FALSE(*task);
  EXPECT_EQ(coro::run(loop(), asks(std::move(*task))).error(), std::errc::not_enough_memory);
}

// ---- receivers that are destroyed after they were woken

Task<void> receive(coro::Channel<int>* channel, int* value) {
  const std::optional<int> received = co_await channel->receive();
  *value = received.value_or(-1);
}

#ifndef SPATE_ADDRESS_SANITIZER  // With it, small frames cannot run out of memory.
// Either frame may be missing: run()'s, or the task's.
TEST_F(CoroWaits, RunReportsThatMemoryRanOutAtStart) {
  const auto at_once = []() -> Task<Result<int>> { co_return 7; };
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    kept_memory.close();
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope faults(plan);
    EXPECT_EQ(coro::run(loop(), at_once()).error(), std::errc::not_enough_memory);
  }
  begin_with_nothing_kept();
}
#endif

TEST_F(CoroWaits, NextReceiverGetsValueOfDestroyedReceiver) {
  coro::Channel<int> channel(2);
  Scope first(loop());
  Scope second(loop());
  int one = 0;
  int other = 0;
  first.spawn(receive(&channel, &one));
  second.spawn(receive(&channel, &other));
  ASSERT_TRUE(channel.try_send(7));
  first.cancel();  // Woken, and not yet resumed.
  turns();
  EXPECT_EQ(one, 0);
  EXPECT_EQ(other, 7);
}

// In a statement, the temporary that waits is destroyed before the receiver.
TEST_F(CoroWaits, WaiterDestroyedInUntilStopHoldsNoReservation) {
  const auto stops = [](coro::Channel<int>* channel) -> Task<void> {
    co_await coro::until_stop(channel->receive());
    ADD_FAILURE() << "it went on";
  };
  coro::Channel<int> channel(1);
  {
    Scope scope(loop());
    scope.spawn(stops(&channel));
  }
  EXPECT_TRUE(channel.try_send(7));
  EXPECT_EQ(channel.try_receive(), 7);
}

TEST_F(CoroWaits, UntilStopWrapsPlainValuesInResult) {
  const auto receives = [](coro::Channel<int>* channel) -> Task<int> {
    const Result<std::optional<int>> value = co_await coro::until_stop(channel->receive());
    const Result<void> nothing = co_await coro::until_stop(sleeper_of_none());
    co_return nothing ? value.value_or(0).value_or(0) : 0;
  };
  coro::Channel<int> channel(1);
  EXPECT_TRUE(channel.try_send(7));
  EXPECT_EQ(coro::run(loop(), receives(&channel)), 7);
}

TEST_F(CoroWaits, ClosedChannelWakesAllWaiters) {
  coro::Channel<int> channel(1);
  Scope scope(loop());
  int values[3] = {};
  for (int& value : values) scope.spawn(receive(&channel, &value));
  ASSERT_TRUE(channel.try_send(7));
  channel.close();
  EXPECT_FALSE(channel.try_send(8));
  turns();
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values[1], -1);
  EXPECT_EQ(values[2], -1);
}

TEST_F(CoroWaits, NextWaiterGetsLockOfDestroyedWaiter) {
  coro::Mutex mutex;
  Scope first(loop());
  Scope second(loop());
  const auto take = [](coro::Mutex* its, bool* has) -> Task<void> {
    const coro::Mutex::Lock lock(co_await its->lock());
    *has = true;
    co_await coro::sleep(1h);
  };
  bool one = false;
  bool other = false;
  {
    const coro::Mutex::Lock lock = mutex.try_lock();
    ASSERT_TRUE(lock);
    EXPECT_FALSE(mutex.try_lock());
    first.spawn(take(&mutex, &one));
    second.spawn(take(&mutex, &other));
  }
  first.cancel();
  turns();
  EXPECT_FALSE(one);
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace spate::testing
