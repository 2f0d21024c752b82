#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spate/hooks.h"
#include "spate/loop.h"
#include "spate/timer.h"
#include "support/sanitizers.h"
#include "tests/support/backends.h"
#include "tests/support/running.h"

namespace spate {
namespace {

using testing::runs_out;

std::unique_ptr<Loop> make_loop(std::string_view backend) {
  return std::move(*Loop::create({.backend = backend}));
}

// Counts the tasks of each producer, and checks their order.
struct Account {
  explicit Account(std::size_t producers) : next(producers, 0) {}
  void note(std::size_t producer, int number) {
    in_order = in_order && next[producer] == number;
    ++next[producer];
    ++total;
  }
  std::vector<int> next;
  int total = 0;
  bool in_order = true;
};

class Post : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Post, LosesNothingAndKeepsOrderOfEachProducer) {
  constexpr int kEach = 10'000;
  constexpr int kProducers = 4;
  const auto loop = make_loop(GetParam());
  Account account(kProducers);
  loop->ref();
  std::vector<std::thread> producers;
  for (std::size_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&loop, &account, p] {
      for (int i = 0; i < kEach; ++i) {
        ASSERT_TRUE(loop->post([&loop, &account, p, i] {
          account.note(p, i);
          if (account.total == kEach * kProducers) loop->stop();
        }));
      }
    });
  }
  EXPECT_FALSE(loop->run());
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(account.total, kEach * kProducers);
  EXPECT_TRUE(account.in_order);
  EXPECT_EQ(loop->metrics().posts, static_cast<std::uint64_t>(kEach) * kProducers);
}

// Posts one task at a time, each while the loop may be asleep: the test hangs if a wake-up is lost.
TEST_P(Post, WakesSleepingLoopEachTime) {
  constexpr int kRounds = 3000;
  const auto loop = make_loop(GetParam());
  std::atomic<int> answered{0};
  loop->ref();
  std::thread asker([&] {
    for (int i = 0; i < kRounds; ++i) {
      loop->post([&answered] {
        answered.fetch_add(1);
        answered.notify_one();
      });
      while (answered.load() == i) answered.wait(i);
    }
    loop->post([&loop] { loop->stop(); });
  });
  EXPECT_FALSE(loop->run());
  asker.join();
  EXPECT_EQ(answered.load(), kRounds);
}

// The moment between the loop's last check for posts and its sleep is short: posts are made at
// every distance from the previous answer, so that some hit it. One of the two must notice each
// post.
TEST_P(Post, WakesLoopThatIsAboutToSleep) {
  constexpr int kRounds = 60'000;
  const auto loop = make_loop(GetParam());
  std::atomic<int> answered{0};
  bool lost = false;
  loop->ref();
  std::thread asker([&] {
    for (int i = 0; i < kRounds && !lost; ++i) {
      for (int pause = i * 7 % 5000; pause > 0; --pause)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      loop->post([&answered] { answered.fetch_add(1, std::memory_order_release); });
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      for (unsigned looks = 0; answered.load(std::memory_order_acquire) == i; ++looks) {
        if (looks % 64 == 63) std::this_thread::yield();
        if (looks % 4096 == 4095 && std::chrono::steady_clock::now() > limit) {
          lost = true;
          break;
        }
      }
    }
    loop->post([&loop] { loop->stop(); });
    loop->wake();
  });
  EXPECT_FALSE(loop->run());
  asker.join();
  EXPECT_FALSE(lost) << "after " << answered.load() << " posts";
}

// A thread_local that posts in its destructor. It is made before the thread's first post, and so
// destroyed after everything that the post made.
struct PostsWhenItGoes {
  std::function<void()> post;
  ~PostsWhenItGoes() {
    if (post) post();
  }
};
thread_local PostsWhenItGoes last_post;

TEST_P(Post, ThreadLocalDestructorPostsInOrder) {
  constexpr int kThreads = 50;
  const auto loop = make_loop(GetParam());
  const auto other = make_loop(GetParam());
  Account account(kThreads);
  loop->ref();
  std::thread ending([&] {
    for (std::size_t t = 0; t < kThreads; ++t) {
      std::thread([&, t] {
        last_post.post = [&, t] {
          EXPECT_TRUE(other->post([] {}));
          for (int i = 100; i < 200; ++i) loop->post([&account, t, i] { account.note(t, i); });
        };
        for (int i = 0; i < 100; ++i) loop->post([&account, t, i] { account.note(t, i); });
      }).join();
    }
  });
  while (account.total < kThreads * 200) ASSERT_FALSE(loop->run(Run::once));
  ending.join();
  EXPECT_TRUE(account.in_order);
  ASSERT_FALSE(other->run(Run::no_wait));
  EXPECT_EQ(other->metrics().posts, static_cast<std::uint64_t>(kThreads));
}

#ifndef SPATE_TEST_THREAD_SANITIZED  // It releases the thread's data before the last round.
// The destructors of a thread's keys run last of all, in several rounds if they set a key again.
struct PostsInEachRound {
  static constexpr int kRounds = 3;

  static void on_end(void* context) {
    auto& self = *static_cast<PostsInEachRound*>(context);
    const int round = self.rounds.fetch_add(1) + 1;
    self.let_the_loop_look();
    self.loop->post([&self] { self.called.fetch_add(1); });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (self.called.load() < round && std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    if (round < kRounds) ::pthread_setspecific(self.key, context);
  }

  // Waits until the loop has released the thread's queue.
  void let_the_loop_look() const {
    std::thread([this] {
      for (int i = 0; i < 3; ++i) {
        std::atomic<bool> seen{false};
        loop->post([&seen] { seen.store(true); });
        while (!seen.load()) std::this_thread::yield();
      }
    }).join();
  }

  Loop* loop;
  pthread_key_t key{};
  std::atomic<int> rounds{0};
  std::atomic<int> called{0};
};

TEST_P(Post, TaskOfThreadKeyDestructorIsCalled) {
  const auto loop = make_loop(GetParam());
  PostsInEachRound posts{.loop = loop.get()};
  ASSERT_EQ(::pthread_key_create(&posts.key, &PostsInEachRound::on_end), 0);
  loop->ref();
  std::thread ending([&] {
    std::thread([&] { ::pthread_setspecific(posts.key, &posts); }).join();
    loop->post([&loop] { loop->stop(); });
  });
  EXPECT_FALSE(loop->run());
  ending.join();
  ::pthread_key_delete(posts.key);
  EXPECT_EQ(posts.called.load(), PostsInEachRound::kRounds);
}
#endif

// Posts to a loop that is not running, so that all are queued when it starts.
struct PostsLast {
  static void on_end(void* context) {
    auto& self = *static_cast<PostsLast*>(context);
    self.loop->post([&self] { self.log += "last"; });
  }

  Loop* loop;
  std::string log;
};

TEST_P(Post, ThreadKeyDestructorPostsInThreadOrder) {
  const auto loop = make_loop(GetParam());
  PostsLast posts{.loop = loop.get(), .log = {}};
  pthread_key_t key{};
  ASSERT_EQ(::pthread_key_create(&key, &PostsLast::on_end), 0);
  std::thread([&] {
    loop->post([&posts] { posts.log += "first "; });
    ::pthread_setspecific(key, &posts);
  }).join();
  ::pthread_key_delete(key);
  ASSERT_FALSE(loop->run(Run::no_wait));
  EXPECT_EQ(posts.log, "first last");
}

TEST_P(Post, MakesNoSystemCallWhileLoopIsBusy) {
  constexpr int kPosts = 5000;
  const auto loop = make_loop(GetParam());
  Idle busy(*loop, [] {});
  ASSERT_TRUE(busy.start());
  ASSERT_FALSE(loop->run(Run::no_wait));
  int called = 0;
  const std::uint64_t before = loop->metrics().kernel_calls.wake_write;
  std::thread producer([&] {
    for (int i = 0; i < kPosts; ++i) loop->post([&called] { ++called; });
  });
  while (called < kPosts) ASSERT_FALSE(loop->run(Run::once));
  producer.join();
  EXPECT_EQ(loop->metrics().kernel_calls.wake_write, before);
}

TEST_P(Post, MakesOneSystemCallForBurstIntoSleepingLoop) {
  const auto loop = make_loop(GetParam());
  loop->ref();
  ASSERT_EQ(loop->prepare_to_wait(), kForever);
  int called = 0;
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) loop->post([&called] { ++called; });
  });
  producer.join();
  EXPECT_EQ(loop->metrics().kernel_calls.wake_write, 1u);
  ASSERT_FALSE(loop->run(Run::no_wait));
  EXPECT_EQ(called, 1000);
}

TEST_P(Post, PostInCallbackDoesNotStarveOthers) {
  const auto loop = make_loop(GetParam());
  int posts = 0;
  int ticks = 0;
  struct Poster {
    Loop& loop;
    int& posts;
    void operator()() const {
      if (++posts < 10'000) loop.post(Poster{loop, posts});
    }
  };
  Timer timer(*loop, [&ticks] { ++ticks; });
  timer.start(Nanos{0}, Nanos{1000});
  timer.loop().unref();
  loop->post(Poster{*loop, posts});
  EXPECT_TRUE(runs_out(*loop));
  EXPECT_EQ(posts, 10'000);
  EXPECT_GE(ticks, 5);
  loop->ref();
}

TEST_P(Post, IsDestroyedUncalledWithLoop) {
  const auto shared = std::make_shared<int>(0);
  {
    const auto loop = make_loop(GetParam());
    std::vector<std::thread> producers;
    for (int p = 0; p < 3; ++p) {
      producers.emplace_back([&loop, shared] {
        for (int i = 0; i < 1000; ++i) loop->post([shared] { ++*shared; });
      });
    }
    for (std::thread& producer : producers) producer.join();
    EXPECT_GT(shared.use_count(), 3000);
  }
  EXPECT_EQ(*shared, 0);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST_P(Post, StopsLoopOfAnotherThread) {
  for (int i = 0; i < 200; ++i) {
    const auto loop = make_loop(GetParam());
    loop->ref();
    std::thread runner([&loop] { EXPECT_FALSE(loop->run()); });
    loop->post([&loop] { loop->stop(); });
    runner.join();
  }
}

// Each loop passes a token on to the next; all end after a number of rounds.
TEST_P(Post, PassesTokenAroundRingOfLoops) {
  constexpr std::size_t kLoops = 3;
  constexpr int kHops = 3000;
  struct Ring {
    std::vector<std::unique_ptr<Loop>> loops;
    int hops = 0;  // Handed over with the token.
    void pass(std::size_t at) {
      if (++hops == kHops) {
        for (const auto& loop : loops) loop->post([&stopped = *loop] { stopped.stop(); });
        return;
      }
      const std::size_t next = (at + 1) % loops.size();
      loops[next]->post([this, next] { pass(next); });
    }
  };
  Ring ring;
  for (std::size_t i = 0; i < kLoops; ++i) {
    ring.loops.push_back(make_loop(GetParam()));
    ring.loops.back()->ref();
  }
  std::vector<std::thread> runners;
  for (const auto& loop : ring.loops) {
    runners.emplace_back([&loop] { EXPECT_FALSE(loop->run()); });
  }
  ring.loops[0]->post([&ring] { ring.pass(0); });
  for (std::thread& runner : runners) runner.join();
  EXPECT_EQ(ring.hops, kHops);
}

TEST_P(Post, TransfersBetweenAllLoopsWithoutLoss) {
  constexpr std::size_t kLoops = 3;
  constexpr int kEach = 2000;
  struct Member {
    std::unique_ptr<Loop> loop;
    int received = 0;
  };
  std::vector<Member> members(kLoops);
  for (Member& member : members) {
    member.loop = make_loop(GetParam());
    member.loop->ref();
  }
  const auto send_to_all = [&members] {
    for (int i = 0; i < kEach; ++i) {
      for (Member& member : members) {
        member.loop->post([&member] {
          if (++member.received == kEach * static_cast<int>(kLoops)) member.loop->stop();
        });
      }
    }
  };
  std::vector<std::thread> runners;
  for (Member& member : members) {
    member.loop->post(send_to_all);
    runners.emplace_back([&member] { EXPECT_FALSE(member.loop->run()); });
  }
  for (std::thread& runner : runners) runner.join();
  for (const Member& member : members) {
    EXPECT_EQ(member.received, kEach * static_cast<int>(kLoops));
  }
}

TEST_P(Post, WorksFromShortLivedThreads) {
  const auto loop = make_loop(GetParam());
  int called = 0;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] { loop->post([&called] { ++called; }); }).join();
    loop->run(Run::no_wait);
  }
  EXPECT_EQ(called, 100);
}

TEST_P(Post, WakeMakesSleepingLoopTurnOnce) {
  const auto loop = make_loop(GetParam());
  loop->ref();
  std::atomic<bool> woken{false};
  std::thread waker([&] {
    while (!woken.load()) loop->wake();
  });
  ASSERT_FALSE(loop->run(Run::once));
  woken.store(true);
  waker.join();
}

INSTANTIATE_TEST_SUITE_P(Backends, Post, ::testing::ValuesIn(testing::backends_here()),
                         testing::backend_test_name);

}  // namespace
}  // namespace spate
