// Costs of coroutines that are equal on each machine: sizes, and waits that must not allocate.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/fault.h"
#include "spate/coro/channel.h"
#include "spate/coro/child.h"
#include "spate/coro/connect.h"
#include "spate/coro/generator.h"
#include "spate/coro/listener.h"
#include "spate/coro/mailbox.h"
#include "spate/coro/offload.h"
#include "spate/coro/on_loop.h"
#include "spate/coro/run.h"
#include "spate/coro/signals.h"
#include "spate/coro/stream.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "tests/coro/counted_new.h"
#include "tests/coro/kept.h"
#include "tests/support/scripted.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

// A part of each frame, or of each connection: enlarging it needs a decision.
static_assert(sizeof(coro::TaskPromise<void>) <= 48);
static_assert(sizeof(coro::Stream) <= 40);
static_assert(sizeof(coro::Stream::Read) <= 16);
static_assert(sizeof(coro::Stream::ReadFramed<FixedSize>) <= 32);  // 8 of them the framing's.
static_assert(sizeof(coro::Stream::Wait) <= 16);
static_assert(sizeof(coro::Event::Wait) <= 16);
static_assert(sizeof(coro::Semaphore::Acquire) <= 16);
static_assert(sizeof(coro::Channel<int>::Receive) <= 16);
static_assert(sizeof(coro::Mailbox<int>::Receive) <= 16);
static_assert(sizeof(coro::Listener::Accept) <= 16);
static_assert(sizeof(coro::Signals::Next) <= 16);
static_assert(sizeof(Task<void>) == sizeof(void*));
static_assert(sizeof(Task<void>::Awaiter) == sizeof(void*));

constexpr int kOften = 5000;

// Counts the allocations of a second run, after the first has made those needed once.
class CoroCosts : public ::testing::Test {
 protected:
  CoroCosts() { begin_with_nothing_kept(); }
  template <class Make>
  static std::uint64_t allocations_of(Loop& loop, Make make) {
    coro::run(loop, make());
    FaultPlan plan;
    const FaultScope faults(plan);
    const std::uint64_t before = calls_of_new();
    coro::run(loop, make());
    return plan.calls(SystemCall::allocate) + calls_of_new() - before;
  }
  Loop& loop() { return *loop_; }

 private:
  std::unique_ptr<Loop> loop_ = must(Loop::create());
};

Task<void> nothing() { co_return; }
Task<void> waits_once() { co_await coro::next_turn(); }

TEST_F(CoroCosts, AwaitingTasksAllocatesNothing) {
  const auto many = []() -> Task<void> {
    for (int i = 0; i < kOften; ++i) co_await nothing();
    for (int i = 0; i < kOften; ++i) co_await waits_once();
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

TEST_F(CoroCosts, SpawningAndJoiningAllocatesNothing) {
  const auto many = [this] {
    return [](Loop* loop) -> Task<void> {
      for (int i = 0; i < kOften; ++i) {
        coro::Scope scope(*loop);
        scope.spawn(waits_once());
        scope.spawn(nothing());
        co_await scope.join();
      }
    }(&loop());
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

// On the test's clock: otherwise the loop allocates for timers due in another of its ticks.
TEST_F(CoroCosts, TimersAllocateNothing) {
  ScriptedLoop scripted;
  scripted.backend->waits.reserve(10 * kOften);
  const auto many = []() -> Task<void> {
    for (int i = 0; i < kOften; ++i) {
      co_await coro::sleep(1ns);
      co_await coro::with_deadline(1us, waits_once());
    }
  };
  EXPECT_EQ(allocations_of(*scripted.loop, many), 0u);
}

TEST_F(CoroCosts, NoAllocationIsMadeByWhenAllAndWhenAny) {
  const auto many = []() -> Task<void> {
    for (int i = 0; i < kOften; ++i) {
      co_await coro::when_all(waits_once(), waits_once());
      co_await coro::when_any(waits_once(), waits_once());
    }
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

Task<void> puts(coro::Channel<int>* channel) {
  for (int i = 0; i < kOften; ++i) co_await channel->send(i);
}
Task<void> takes(coro::Channel<int>* channel) {
  for (int i = 0; i < kOften; ++i) co_await channel->receive();
}

TEST_F(CoroCosts, PassingThroughChannelAllocatesNothing) {
  coro::Channel<int> channel(2);
  const auto many = [&channel] {
    return [](coro::Channel<int>* its) -> Task<void> {
      co_await coro::when_all(puts(its), takes(its));
    }(&channel);
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

TEST_F(CoroCosts, MailboxAllocatesNothing) {
  coro::Mailbox<int> mailbox(loop(), 2);
  const auto many = [&mailbox] {
    return [](coro::Mailbox<int>* its) -> Task<void> {
      for (int i = 0; i < kOften; ++i) {
        EXPECT_TRUE(its->post(1));
        EXPECT_TRUE(its->post(2));
        co_await its->receive();
        co_await its->receive();
        co_await coro::next_turn();  // The first turn allocates room for all that is woken in one.
      }
    }(&mailbox);
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

TEST_F(CoroCosts, WaitingForMutexAllocatesNothing) {
  coro::Mutex mutex;
  const auto lock_often = [](coro::Mutex* its) -> Task<void> {
    for (int i = 0; i < kOften; ++i) {
      const coro::Mutex::Lock lock(co_await its->lock());
      co_await coro::next_turn();
    }
  };
  const auto both = [&] { return coro::when_all(lock_often(&mutex), lock_often(&mutex)); };
  const auto many = [&both] {
    return [](const decltype(both)* make) -> Task<void> {
      auto&& wait = (*make)();
      co_await wait;
    }(&both);
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

coro::Generator<int> values() {
  for (int i = 0;; ++i) {
    if (i % 2 == 0) co_await coro::next_turn();
    co_yield i;
  }
}
TEST_F(CoroCosts, GeneratorAllocatesOneFrame) {
  const auto many = []() -> Task<void> {
    coro::Generator<int> its_values = values();
    for (int i = 0; i < kOften; ++i) co_await its_values.next();
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

// ---- streams

Task<void> echo(coro::Stream* stream) {
  for (int i = 0; i < kOften; ++i) {
    const Result<Bytes> some = co_await stream->read_some();
    EXPECT_TRUE(some);
    stream->write(*some);
  }
}
Task<void> ask(coro::Stream* stream) {
  for (int i = 0; i < kOften; ++i) {
    const Result<void> sent = co_await stream->send("12345678");
    EXPECT_TRUE(sent);
    const Result<Bytes> answer = co_await stream->read_exactly(8);
    EXPECT_TRUE(answer);
  }
}

// Through a socket: a pair in memory keeps unread bytes in its own buffers.
TEST_F(CoroCosts, MessagesAllocateNothing) {
  auto pair = must(spate::Stream::socket_pair(loop()));
  coro::Stream left(std::move(pair.first));
  coro::Stream right(std::move(pair.second));
  const auto many = [&] {
    return [](coro::Stream* one, coro::Stream* other) -> Task<void> {
      co_await coro::when_all(ask(one), echo(other));
    }(&left, &right);
  };
  EXPECT_EQ(allocations_of(loop(), many), 0u);
}

// ---- operations that must allocate, and how often each does

constexpr int kSome = 200;

Task<void> accept_some(coro::Listener* door) {
  for (int i = 0; i < kSome; ++i) {
    const Result<coro::Accepted> newcomer = co_await door->accept();
    EXPECT_TRUE(newcomer);
  }
}
Task<void> connect_some(Address address) {
  for (int i = 0; i < kSome; ++i) {
    const Result<spate::Stream> stream = co_await coro::connect(address);
    EXPECT_TRUE(stream);
  }
}

TEST_F(CoroCosts, ConnectionAllocatesSixTimesForBothEnds) {
  coro::Listener door(must(coro::Listener::create(loop(), Address::loopback_ipv4(0))));
  const auto many = [&door] {
    return [](coro::Listener* its) -> Task<void> {
      const Address address = its->listener().address();
      co_await coro::when_all(accept_some(its), connect_some(address));
    }(&door);
  };
  EXPECT_LE(allocations_of(loop(), many), 6u * kSome);
}

Task<void> resolve_some() {
  for (int i = 0; i < kSome; ++i) {
    const auto addresses = co_await coro::resolve("127.0.0.1", 80);
    EXPECT_TRUE(addresses);
  }
}
TEST_F(CoroCosts, ResolvingNumericAddressAllocatesThreeTimes) {
  EXPECT_LE(allocations_of(loop(), resolve_some), 3u * kSome);
}

Task<void> offload_some(ThreadPool* pool) {
  for (int i = 0; i < kSome; ++i) {
    const Result<int> value = co_await coro::offload([] { return 7; }, *pool);
    EXPECT_TRUE(value);
  }
}
TEST_F(CoroCosts, OffloadedWorkAllocatesThreeTimes) {
  ThreadPool pool;
  constexpr std::uint64_t kOfTheThreads = 10;  // When they start.
  EXPECT_LE(allocations_of(loop(), [&pool] { return offload_some(&pool); }),
            3u * kSome + kOfTheThreads);
}

Task<void> signal_some(coro::Signals* signals) {
  for (int i = 0; i < kOften; ++i) {
    std::raise(SIGUSR1);
    co_await signals->next();
  }
}
TEST_F(CoroCosts, SignalsAllocateNothing) {
  coro::Signals signals(loop());
  ASSERT_FALSE(signals.add(SIGUSR1));
  EXPECT_EQ(allocations_of(loop(), [&signals] { return signal_some(&signals); }), 0u);
}

constexpr int kChildren = 100;
Task<void> outlive_some() {
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    const Result<int> status = co_await coro::exit_of(pid);
    EXPECT_TRUE(status);
  }
}
TEST_F(CoroCosts, ChildTasksAllocateNothing) {
  EXPECT_EQ(allocations_of(loop(), outlive_some), 0u);
}

Task<void> call_some(Loop* other) {
  for (int i = 0; i < kSome; ++i) {
    const Result<int> value = co_await coro::on(*other, [] { return 7; });
    EXPECT_TRUE(value);
  }
}
TEST_F(CoroCosts, CallOnLoopAllocatesOnce) {
  EXPECT_LE(allocations_of(loop(), [this] { return call_some(&loop()); }), 1u * kSome);
}

}  // namespace
}  // namespace spate::testing
