// spate_post(), spate_wake() and spate_async_send(): the functions of C allowed on other threads.
#include "spate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/c/c_loop.h"

namespace spate::testing {
namespace {

constexpr int kThreads = 3;
constexpr int kEach = 5000;

template <class Work>
void on_threads(const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&work] {
      for (int k = 0; k < kEach; ++k) work();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Sent {
  spate_async async;
  std::atomic<int> sent{0};
  int seen = 0;  // Used on the loop's thread only.
  int calls = 0;
};

void note(Sent& it) {
  ++it.calls;
  it.seen = it.sent.load();
  if (it.seen == kThreads * kEach) spate_async_stop(&it.async);
}

TEST(CThreads, PostsOfManyThreadsAreCalledOnceEach) {
  const CLoop loop;
  int calls = 0;
  std::thread posters([&] {
    on_threads([&] {
      const auto count = [](void* data) { ++*static_cast<int*>(data); };
      while (spate_post(loop.get(), count, &calls) != 0) std::this_thread::yield();
    });
    spate_wake(loop.get());
  });
  while (calls < kThreads * kEach) spate_loop_run_for(loop.get(), kMillisecond);
  posters.join();
  EXPECT_EQ(calls, kThreads * kEach);
}

TEST(CThreads, LastOfManySendsIsReceived) {
  const CLoop loop;
  Sent it;
  const auto called = [](spate_loop*, spate_async* async, uint32_t) {
    note(*static_cast<Sent*>(async->watcher.data));
  };
  spate_async_init(&it.async, loop.get(), called, &it);
  ASSERT_EQ(spate_async_start(&it.async), 0);
  std::thread senders([&] {
    on_threads([&] {
      it.sent.fetch_add(1);
      spate_async_send(&it.async);
      spate_async_is_sent(&it.async);
    });
  });
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_UNTIL_DONE), 0);
  senders.join();
  EXPECT_EQ(it.seen, kThreads * kEach);
  EXPECT_LE(it.calls, kThreads * kEach);
}

TEST(CThreads, BatchReceivesSendsOfOtherThreads) {
  const CLoop loop;
  Sent it;
  spate_async_init(&it.async, loop.get(), nullptr, nullptr);
  ASSERT_EQ(spate_async_start(&it.async), 0);
  std::thread senders([&] {
    on_threads([&] {
      it.sent.fetch_add(1);
      spate_async_send(&it.async);
    });
  });
  Batch batch{loop};
  while (it.seen < kThreads * kEach) {
    const int due = batch.poll(kMillisecond);
    for (int i = 0; i < due; ++i) {
      if (batch.claim(i) != nullptr) note(it);
    }
  }
  senders.join();
  EXPECT_FALSE(spate_is_active(&it.async.watcher));
}

}  // namespace
}  // namespace spate::testing
