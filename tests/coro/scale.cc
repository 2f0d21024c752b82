// Many tasks, deep ones, and long series of operations that complete at once: on small stacks, in
// every build.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <memory>

#include "spate/coro/channel.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "tests/coro/mark.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/scripted.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

// ---- depth

Task<int> nested(int depth, int* live) {
  const Mark mark(live);
  if (depth == 0) {
    co_await coro::sleep(1ms);
    co_return 0;
  }
  const int below = co_await nested(depth - 1, live);
  co_return below + 1;
}
Task<void> nests(int depth, int* live, int* result) { *result = co_await nested(depth, live); }

// A sanitizer enlarges stack frames by such a factor.
constexpr int kDeep = kIsSanitized ? 1000 : 10'000;

TEST(CoroScale, ManyNestedTasksAreDestroyed) {
  ScriptedLoop scripted;
  int live = 0;
  int result = 0;
  {
    Scope scope(*scripted.loop);
    scope.spawn(nests(kDeep, &live, &result));
    EXPECT_EQ(live, kDeep + 1);
  }
  EXPECT_EQ(live, 0);
}

TEST(CoroScale, ManyNestedTasksEndInTurn) {
  ScriptedLoop scripted;
  int live = 0;
  int result = 0;
  coro::run(*scripted.loop, nests(kDeep, &live, &result));
  EXPECT_EQ(live, 0);
  EXPECT_EQ(result, kDeep);
}

// ---- operations that complete at once, on a small stack

constexpr int kOftenOver = 1'000'000;

Task<int> over_at_once() { co_return 1; }
Task<int> await_many() {
  int sum = 0;
  for (int i = 0; i < kOftenOver; ++i) {
    const int one = co_await over_at_once();
    sum += one;
  }
  co_return sum;
}
Task<void> pass_in(coro::Channel<int>* channel) {
  for (int i = 0; i < kOftenOver; ++i) co_await channel->send(1);
  channel->close();
}
Task<int> take_out(coro::Channel<int>* channel) {
  int sum = 0;
  for (;;) {
    const std::optional<int> value = co_await channel->receive();
    if (!value) co_return sum;
    sum += *value;
  }
}
Task<int> pass_many() {
  coro::Channel<int> channel(16);
  const auto both = co_await coro::when_all(pass_in(&channel), take_out(&channel));
  co_return std::get<1>(both);
}

// Runs a task on a thread with a stack of 64 KiB.
int run_on_a_small_stack(Task<int> (*make)()) {
  struct Job {
    Task<int> (*make)();
    int result = 0;
  } job{make};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstacksize(&attributes, 64 * 1024), 0);
  pthread_t thread;
  const auto work = [](void* context) -> void* {
    auto& its_job = *static_cast<Job*>(context);
    const std::unique_ptr<Loop> loop = must(Loop::create());
    its_job.result = coro::run(*loop, its_job.make());
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, work, &job), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return job.result;
}

TEST(CoroScale, EndsMillionChildrenAtOnceOnSmallStack) {
  EXPECT_EQ(run_on_a_small_stack(await_many), kOftenOver);
}

TEST(CoroScale, PassesMillionValuesOnSmallStack) {
  EXPECT_EQ(run_on_a_small_stack(pass_many), kOftenOver);
}

// ---- many in a scope

Task<void> waits(Nanos time, int* live, int* ended) {
  const Mark mark(live);
  co_await coro::sleep(time);
  ++*ended;
}
Task<void> joins(Scope* scope, const int* live, bool* is_joined) {
  co_await scope->join();
  EXPECT_EQ(*live, 0) << "join() came early";
  *is_joined = true;
}

constexpr int kCrowd = 100'000;

TEST(CoroScale, JoinsLargeScopeExactlyWhenLastTaskEnds) {
  for (const std::uint64_t seed : seeds(2)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ScriptedLoop scripted;
    Scope observers(*scripted.loop);
    auto scope = std::make_unique<Scope>(*scripted.loop);
    int live = 0;
    int ended = 0;
    int begun = 0;
    int cancelled = 0;
    while (begun < kCrowd) {
      const std::size_t lot = random.below(2000);
      for (std::size_t i = 0; i < lot; ++i)
        begun += scope->spawn(waits(Nanos{random.span(1'000'000)}, &live, &ended));
      EXPECT_EQ(static_cast<std::size_t>(live), scope->size());
      scripted.clock.advance(Nanos{random.span(200'000)});
      EXPECT_FALSE(scripted.loop->run(Run::no_wait));
      if (!random.one_in(20)) continue;
      cancelled += live;
      if (random.one_in(2)) {
        scope->cancel();
      } else {
        scope->stop();
        EXPECT_FALSE(scope->spawn(waits(0ns, &live, &ended)));
        scope = std::make_unique<Scope>(*scripted.loop);
      }
      EXPECT_EQ(live, 0);
    }
    bool is_joined = false;
    observers.spawn(joins(scope.get(), &live, &is_joined));
    while (!is_joined && !HasFailure()) {
      EXPECT_GT(live, 0) << "join() comes late";
      scripted.clock.advance(100us);
      EXPECT_FALSE(scripted.loop->run(Run::no_wait));
    }
    EXPECT_EQ(live, 0);
    EXPECT_EQ(begun, ended + cancelled);
  }
}

}  // namespace
}  // namespace spate::testing
