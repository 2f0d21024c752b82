// Coroutines and other threads: calls on another loop, and values from other threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/fault.h"
#include "spate/coro/mailbox.h"
#include "spate/coro/on_loop.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/loop.h"
#include "spate/net/workers.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Mailbox;
using coro::Scope;
using coro::Task;

// A loop that another thread runs until the end of the test.
class Elsewhere {
 public:
  Elsewhere() : loop_(must(Loop::create())) {
    loop_->ref();
    thread_ = std::thread([loop = loop_.get()] { EXPECT_FALSE(loop->run()); });
  }
  ~Elsewhere() { end(); }

  Loop& loop() { return *loop_; }
  std::thread::id id() const { return thread_.get_id(); }
  void end() {
    if (!thread_.joinable()) return;
    loop_->post([loop = loop_.get()] { loop->stop(); });
    thread_.join();
    loop_.reset();
  }

 private:
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

class CoroThreads : public ::testing::Test {
 protected:
  CoroThreads() : loop_(must(Loop::create())) {}

  std::unique_ptr<Loop> loop_;
};

// ---- calls

Task<Result<int>> ask_within_10s(Loop* other, std::shared_ptr<void> last) {
  auto call = [last = std::move(last)] { return 1; };
  auto asks = [](Loop* its_loop, decltype(call) its_call) -> Task<Result<int>> {
    co_return co_await coro::on(*its_loop, std::move(its_call));
  };
  Task<Result<int>> asked = asks(other, std::move(call));
  co_return co_await coro::with_deadline(10s, std::move(asked));
}

TEST_F(CoroThreads, CallOnLoopOfStoppedWorkerIsCancelled) {
  const std::unique_ptr<Workers> workers = must(Workers::create({.threads = 1}));
  EXPECT_TRUE(workers->stop(0s));
  const Result<int> result = coro::run(*loop_, ask_within_10s(&workers->loop(0), nullptr));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), std::errc::operation_canceled);
}

TEST_F(CoroThreads, UncalledFunctionMayDestroyScopeThatAwaitsIt) {
  const std::unique_ptr<Workers> workers = must(Workers::create({.threads = 1}));
  EXPECT_TRUE(workers->stop(0s));
  auto scope = std::make_unique<Scope>(*loop_);
  const auto asks = [](Task<Result<int>> task) -> Task<void> { co_await std::move(task); };
  std::shared_ptr<void> last(static_cast<void*>(nullptr), [&](void*) { scope.reset(); });
  scope->spawn(asks(ask_within_10s(&workers->loop(0), std::move(last))));
  EXPECT_FALSE(loop_->run());
  EXPECT_EQ(scope, nullptr);
}

Task<Result<std::thread::id>> ask_who(Loop* other) {
  co_return co_await coro::on(*other, [] { return std::this_thread::get_id(); });
}

TEST_F(CoroThreads, CallRunsOnOtherLoopAndReturnsItsResult) {
  Elsewhere other;
  EXPECT_EQ(coro::run(*loop_, ask_who(&other.loop())), other.id());
  EXPECT_EQ(coro::run(*loop_, ask_who(loop_.get())), std::this_thread::get_id());
}

TEST_F(CoroThreads, CallMayReturnErrorOrNothing) {
  const auto calls = [](Loop* other, int* called) -> Task<Result<int>> {
    co_await coro::or_return(coro::on(*other, [&] { ++*called; }));
    const auto fail = []() -> Result<int> {
      return std::unexpected(std::make_error_code(std::errc::io_error));
    };
    co_return co_await coro::on(*other, fail);
  };
  Elsewhere other;
  int called = 0;
  EXPECT_EQ(coro::run(*loop_, calls(&other.loop(), &called)).error(), std::errc::io_error);
  EXPECT_EQ(called, 1);
}

TEST_F(CoroThreads, LoopThatEndsBeforeCallReportsError) {
  auto other = must(Loop::create());
  const auto asks = [](Loop* far) -> Task<void> {
    const auto fail = [] { ADD_FAILURE() << "called"; };
    const Result<void> result = co_await coro::on(*far, fail);
    EXPECT_EQ(result.error(), std::errc::operation_canceled);
  };
  Scope scope(*loop_);
  scope.spawn(asks(other.get()));
  other.reset();
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(scope.empty());
}

TEST_F(CoroThreads, CancelledCallIsNotMade) {
  auto other = must(Loop::create());
  auto used = std::make_shared<int>(1);
  const auto asks = [](Loop* far, std::shared_ptr<int> what) -> Task<void> {
    auto call = [what = std::move(what)] { ADD_FAILURE() << "called"; };
    co_await coro::on(*far, std::move(call));
    ADD_FAILURE() << "it went on";
  };
  Scope scope(*loop_);
  scope.spawn(asks(other.get(), used));
  scope.cancel();
  loop_.reset();  // The result has no loop to return to.
  EXPECT_FALSE(other->run(Run::no_wait));
  EXPECT_EQ(used.use_count(), 1);
}

TEST_F(CoroThreads, CallReportsOutOfMemory) {
  auto other = must(Loop::create());
  const auto asks = [](Loop* far) -> Task<void> {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope faults(plan);
    const auto fail = [] { ADD_FAILURE() << "called"; };
    const Result<void> result = co_await coro::on(*far, fail);
    EXPECT_EQ(result.error(), std::errc::not_enough_memory);
  };
  coro::run(*loop_, asks(other.get()));
}

// Several tasks call two loops, and one another, and are cancelled at any time.
TEST_F(CoroThreads, CallsCancelledAtAnyTimeLeakNothing) {
  struct Counted {
    explicit Counted(std::atomic<int>& its_live) : live(its_live) { ++live; }
    ~Counted() { --live; }
    std::atomic<int>& live;
  };
  const auto call_on = [](std::array<Loop*, 3> loops, std::atomic<int>* live,
                          Random* random) -> Task<void> {
    for (int i = 0; i < 5; ++i) {
      const int number = static_cast<int>(random->below(1000));
      auto call = [number, live, held = std::make_shared<Counted>(*live)] {
        auto more = std::make_unique<Counted>(*live);
        return std::make_pair(number, std::move(more));
      };
      const auto result = co_await coro::on(*loops[random->below(3)], std::move(call));
      EXPECT_EQ(result->first, number);
    }
  };
  std::atomic<int> live = 0;
  for (const std::uint64_t seed : seeds(60)) {
    Random random(seed);
    Elsewhere one;
    Elsewhere other;
    Scope scope(*loop_);
    for (int i = 0; i < 10; ++i) {
      scope.spawn(call_on({&one.loop(), &other.loop(), loop_.get()}, &live, &random));
    }
    for (std::size_t turns = random.below(12); turns > 0; --turns) {
      EXPECT_FALSE(loop_->run(Run::once));
    }
    if (random.one_in(2)) {
      EXPECT_FALSE(loop_->run());
      EXPECT_TRUE(scope.empty());
    }
    if (random.one_in(2)) one.end();
  }
  EXPECT_FALSE(loop_->run());
  EXPECT_EQ(live, 0);
}

// ---- a mailbox

Task<void> receive_all(Mailbox<int>* from, std::vector<int>* values) {
  for (;;) {
    const std::optional<int> value = co_await from->receive();
    if (!value) co_return;
    values->push_back(*value);
  }
}

TEST_F(CoroThreads, MailboxIsReceivedInOrderUntilClosed) {
  Mailbox<int> mailbox(*loop_, 2);
  std::vector<int> values;
  EXPECT_TRUE(mailbox.post(1));
  EXPECT_TRUE(mailbox.post(2));
  EXPECT_FALSE(mailbox.post(3)) << "there is no room";
  mailbox.close();
  mailbox.close();
  EXPECT_FALSE(mailbox.post(4)) << "it is closed";
  coro::run(*loop_, receive_all(&mailbox, &values));
  EXPECT_EQ(values, (std::vector<int>{1, 2}));
}

TEST_F(CoroThreads, RefusedValueRemainsWithCaller) {
  Mailbox<std::unique_ptr<int>> mailbox(*loop_, 1);
  EXPECT_TRUE(mailbox.post(std::make_unique<int>(1)));
  auto value = std::make_unique<int>(2);
  EXPECT_FALSE(mailbox.post(std::move(value)));
  EXPECT_NE(value, nullptr);
}

TEST_F(CoroThreads, MailboxKeepsLoopAliveOnlyForWaiters) {
  Mailbox<int> mailbox(*loop_, 1);
  EXPECT_FALSE(loop_->run());
  std::vector<int> values;
  Scope scope(*loop_);
  scope.spawn(receive_all(&mailbox, &values));
  EXPECT_TRUE(loop_->has_work());
  scope.cancel();
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(CoroThreads, MailboxOfDestroyedLoopIsClosed) {
  Mailbox<int> mailbox(*loop_, 1);
  loop_.reset();
  EXPECT_FALSE(mailbox.post(1));
  mailbox.close();
}

TEST_F(CoroThreads, MailboxIsClosedWithoutMemory) {
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope faults(plan);
  Mailbox<int> mailbox(*loop_, 1);
  EXPECT_FALSE(mailbox.post(1));
}

TEST_F(CoroThreads, NonEmptyMailboxLeavesTurnsToOthers) {
  const auto for_ever = [](Mailbox<int>* mailbox) -> Task<void> {
    for (;;) {
      EXPECT_TRUE(mailbox->post(1));
      const std::optional<int> value = co_await mailbox->receive();
      EXPECT_TRUE(value);
    }
  };
  Mailbox<int> mailbox(*loop_, 1);
  Scope scope(*loop_);
  scope.spawn(for_ever(&mailbox));
  EXPECT_FALSE(loop_->run(Run::no_wait));
  scope.cancel();
}

// Threads post consecutive numbers; the tasks that receive them are cancelled at any time.
TEST_F(CoroThreads, ValuesAreNeitherLostNorRepeatedOnCancellation) {
  constexpr int kThreads = 3;
  constexpr int kEach = 3000;
  const auto receives = [](Mailbox<int>* from, std::array<int, kThreads>* next) -> Task<void> {
    for (;;) {
      const std::optional<int> value = co_await from->receive();
      if (!value) co_return;
      int& expected = (*next)[static_cast<std::size_t>(*value % kThreads)];
      EXPECT_EQ(*value / kThreads, expected) << "lost, doubled, or out of order";
      ++expected;
    }
  };
  for (const std::uint64_t seed : seeds(3)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Mailbox<int> mailbox(*loop_, 1 + random.below(50));
    std::array<int, kThreads> next{};
    std::atomic<int> left = kThreads;
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([&mailbox, &left, number] {
        for (int i = 0; i < kEach; ++i) {
          while (!mailbox.post(i * kThreads + number)) std::this_thread::yield();
        }
        if (--left == 0) mailbox.close();
      });
    }
    Scope steady(*loop_);
    steady.spawn(receives(&mailbox, &next));
    while (!steady.empty()) {
      Scope fickle(*loop_);
      for (std::size_t i = random.below(4); i > 0; --i) fickle.spawn(receives(&mailbox, &next));
      for (std::size_t i = random.below(4); i > 0; --i) EXPECT_FALSE(loop_->run(Run::once));
      if (steady.empty()) break;
      if (random.one_in(2)) steady.cancel();
      if (steady.empty()) steady.spawn(receives(&mailbox, &next));
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(next, (std::array<int, kThreads>{kEach, kEach, kEach}));
  }
}

}  // namespace
}  // namespace spate::testing
