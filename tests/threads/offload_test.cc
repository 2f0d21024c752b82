// offload(): work on a pool's threads, and the return of its result.
#include "spate/offload.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "spate/timer.h"
#include "tests/support/sanitizers.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Closed at first; a job that waits for it keeps a thread busy.
class Gate {
 public:
  void open() { open_.test_and_set(), open_.notify_all(); }
  void pass() { open_.wait(false); }

 private:
  std::atomic_flag open_;
};

class OffloadTest : public ::testing::Test {
 protected:
  // Keeps one thread of the pool busy until the gate is open.
  Offloading occupy() {
    std::latch begun(1);
    auto job = offload(*loop_, [&] { begun.count_down(), gate_.pass(); }, [] {}, pool_);
    begun.wait();
    return std::move(*job);
  }

  Gate gate_;  // Outlives the threads that wait for it.
  std::unique_ptr<Loop> loop_ = *Loop::create();
  ThreadPool pool_{{.max_threads = 1, .max_queued = 2, .name = "one"}};
};

TEST_F(OffloadTest, LoopReceivesResultOfWork) {
  std::thread::id worked;
  std::string told;
  const auto job = offload(
      *loop_,
      [&worked] {
        worked = std::this_thread::get_id();
        return std::make_unique<std::string>("done");
      },
      [&told](std::unique_ptr<std::string> text) { told = *text; }, pool_);
  ASSERT_TRUE(job);
  EXPECT_TRUE(told.empty());
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(told, "done");
  EXPECT_NE(worked, std::this_thread::get_id());
  EXPECT_NE(worked, std::thread::id());
}

TEST_F(OffloadTest, WorkIsDestroyedOnThreadThatRanIt) {
  std::thread::id called;
  std::thread::id destroyed;
  std::shared_ptr<void> held(nullptr, [&](void*) { destroyed = std::this_thread::get_id(); });
  const auto job = offload(
      *loop_, [&called, held = std::move(held)] { called = std::this_thread::get_id(); },
      [&] { EXPECT_EQ(called, destroyed); }, pool_);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(called, destroyed);
}

TEST_F(OffloadTest, KeepsLoopAliveOnlyWhileJobIsPending) {
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  bool done = false;
  const auto job = offload(*loop_, [] { std::this_thread::yield(); }, [&done] { done = true; });
  EXPECT_EQ(loop_->active_count(), 1);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_TRUE(done);
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_F(OffloadTest, JobsStartInOrder) {
  const Offloading busy = occupy();
  std::string order;
  const auto first = offload(*loop_, [] {}, [&order] { order += '1'; }, pool_);
  const auto second = offload(*loop_, [] {}, [&order] { order += '2'; }, pool_);
  EXPECT_EQ(pool_.queued(), 2);
  gate_.open();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(order, "12");
}

TEST_F(OffloadTest, RejectsMoreThanMaxQueued) {
  const Offloading busy = occupy();
  int done = 0;
  std::vector<Result<Offloading>> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(offload(*loop_, [] {}, [&done] { ++done; }, pool_));
  EXPECT_TRUE(jobs[0] && jobs[1]);
  ASSERT_FALSE(jobs[2]);
  EXPECT_EQ(jobs[2].error(), Error::queue_full);
  jobs[0]->cancel();
  EXPECT_EQ(pool_.queued(), 1);
  jobs[2] = offload(*loop_, [] {}, [&done] { ++done; }, pool_);
  EXPECT_TRUE(jobs[2]);
  gate_.open();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(done, 2);
}

TEST_F(OffloadTest, FreeThreadTakesJobThoughQueueingIsDisabled) {
  ThreadPool pool({.max_threads = 2, .max_queued = 0});
  std::vector<Result<Offloading>> jobs;
  for (int i = 0; i < 3; ++i)
    jobs.push_back(offload(*loop_, [this] { gate_.pass(); }, [] {}, pool));
  EXPECT_TRUE(jobs[0] && jobs[1]);
  EXPECT_FALSE(jobs[2]);
  gate_.open();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
}

TEST_F(OffloadTest, CreatesThreadsOnDemand) {
  ThreadPool pool({.max_threads = 3});
  EXPECT_EQ(pool.threads(), 0);
  for (int i = 0; i < 5; ++i) {
    const auto job = offload(*loop_, [] {}, [] {}, pool);
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    // The thread is free only a moment after its result was delivered.
    EXPECT_LE(pool.threads(), 3);
  }
  std::vector<Result<Offloading>> jobs;
  std::atomic<int> inside{0};
  for (int i = 0; i < 9; ++i) {
    jobs.push_back(offload(
        *loop_,
        [&inside] {
          for (++inside; inside < 3;) std::this_thread::yield();
        },
        [] {}, pool));
  }
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(pool.threads(), 3);
}

TEST_F(OffloadTest, ThreadsAreNamedAndBlockSignals) {
  std::string name;
  bool blocks = false;
  Gate named;  // The creating thread sets the name.
  const auto job = offload(
      *loop_,
      [&] {
        named.pass();
        char text[16] = {};
        ::prctl(PR_GET_NAME, text);
        name = text;
        sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocks = ::sigismember(&mask, SIGTERM) == 1 && ::sigismember(&mask, SIGUSR1) == 1;
      },
      [] {}, pool_);
  named.open();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(name, "one/0");
  EXPECT_TRUE(blocks);
}

// ---- cancelling

// Counts its live objects.
struct Counted {
  explicit Counted(std::atomic<int>& the_count) : count(&the_count) { ++*count; }
  Counted(const Counted& other) : count(other.count) { ++*count; }
  ~Counted() { --*count; }
  Counted& operator=(const Counted&) = delete;

  std::atomic<int>* count;
};

TEST_F(OffloadTest, UnstartedJobIsRemovedWhenCancelled) {
  const Offloading busy = occupy();
  std::atomic<int> count{0};
  {
    auto job = offload(
        *loop_, [held = Counted(count)] { ADD_FAILURE(); },
        [held = Counted(count)] { ADD_FAILURE(); }, pool_);
    ASSERT_TRUE(job);
    EXPECT_EQ(count, 2);
    job->cancel();
    EXPECT_EQ(count, 0);
    EXPECT_EQ(pool_.queued(), 0);
    EXPECT_EQ(loop_->active_count(), 1);
  }
  gate_.open();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
}

TEST_F(OffloadTest, StartedJobCompletesWithoutCallbackAfterCancellation) {
  std::atomic<bool> ended{false};
  std::latch begun(1);
  {
    const auto job = offload(
        *loop_,
        [&] {
          begun.count_down(), gate_.pass();
          ended = true;
          return 1;
        },
        [](int) { ADD_FAILURE(); }, pool_);
    begun.wait();
  }
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_FALSE(ended);
  gate_.open();
  bool next = false;
  const auto job = offload(*loop_, [] {}, [&next] { next = true; }, pool_);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_TRUE(ended && next);
}

TEST_F(OffloadTest, CompletedJobMayBeCancelledBeforeItsCallback) {
  std::latch ended(1);
  auto job = offload(*loop_, [&ended] { ended.count_down(); }, [] { ADD_FAILURE(); }, pool_);
  ended.wait();
  job->cancel();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
}

TEST_F(OffloadTest, DoneMayDestroyItsOwnJobAndOthers) {
  ThreadPool pool({.max_threads = 2});
  std::vector<Offloading> jobs;
  std::latch ended(3);
  int calls = 0;
  for (int i = 0; i < 3; ++i) {
    auto job =
        offload(*loop_, [&ended] { ended.count_down(); }, [&] { ++calls, jobs.clear(); }, pool);
    jobs.push_back(std::move(*job));
  }
  ended.wait();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(calls, 1);
}

TEST_F(OffloadTest, NestedRunInsideDoneDeliversOtherResults) {
  ThreadPool pool({.max_threads = 1});
  std::vector<Result<Offloading>> jobs;
  std::latch ended(3);
  int calls = 0;
  int inside = 0;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(offload(
        *loop_, [&ended] { ended.count_down(); },
        [&] {
          if (++calls > 1) return;
          EXPECT_FALSE(loop_->run() || loop_->has_work());
          inside = calls;
        },
        pool));
  }
  ended.wait();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(inside, 3);
  EXPECT_EQ(calls, 3);
}

// ---- order of destruction

TEST_F(OffloadTest, LoopMayBeDestroyedBeforeItsJobs) {
  Offloading busy = occupy();
  std::atomic<int> count{0};
  auto waiting =
      offload(*loop_, [held = Counted(count)] { ADD_FAILURE(); }, [] { ADD_FAILURE(); }, pool_);
  loop_.reset();
  EXPECT_EQ(count, 0);
  EXPECT_EQ(pool_.queued(), 0);
  gate_.open();
  busy.cancel();
  waiting->cancel();
}

TEST_F(OffloadTest, LoopMayBeDestroyedWhileJobsEnd) {
  ThreadPool pool({.max_threads = 3});
  for (int round = 0; round < 200; ++round) {
    const std::unique_ptr<Loop> loop = *Loop::create();
    std::vector<Result<Offloading>> jobs;
    for (int i = 0; i < 10; ++i)
      jobs.push_back(
          offload(*loop, [] { return std::string(100, '.'); }, [](std::string) {}, pool));
    if (round % 2 == 0) (void)loop->run(Run::once);
    if (round % 3 == 0) jobs.clear();
  }
}

TEST_F(OffloadTest, PoolCompletesItsJobsBeforeDestruction) {
  int done = 0;
  std::vector<Result<Offloading>> jobs;
  {
    ThreadPool pool({.max_threads = 2});
    for (int i = 0; i < 20; ++i)
      jobs.push_back(offload(*loop_, [] { std::this_thread::yield(); }, [&done] { ++done; }, pool));
  }
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(done, 20);
}

TEST_F(OffloadTest, ManyLoopsShareOnePool) {
  constexpr int kJobs = 500;
  ThreadPool pool({.max_threads = 3});
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&pool, &right] {
      const std::unique_ptr<Loop> loop = *Loop::create();
      std::vector<Offloading> jobs;
      for (int i = 0; i < kJobs; ++i) {
        auto job = offload(
            *loop, [i] { return i * 2; }, [i, &right](int twice) { right += twice == i * 2; },
            pool);
        jobs.push_back(std::move(*job));
        if (i % 7 == 0) (void)loop->run(Run::no_wait);
      }
      EXPECT_FALSE(loop->run() || loop->has_work());
    });
  }
  threads.clear();
  EXPECT_EQ(right, 3 * kJobs);
}

// ---- ends and forks

[[noreturn]] void exit_beside_busy_pool() {
  static std::atomic<int> begun{0};
  static const std::unique_ptr<Loop> loop = *Loop::create();
  static std::vector<Offloading> jobs;
  for (int i = 0; i < 8; ++i) {
    auto job = offload(
        *loop,
        [] {
          ++begun;
          std::this_thread::sleep_for(1h);
        },
        [] {});
    jobs.push_back(std::move(*job));
  }
  while (begun < 4) std::this_thread::yield();
  std::exit(0);
}

TEST(OffloadDeathTest, ProcessEndsWhileSharedPoolIsBusy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_beside_busy_pool(), ::testing::ExitedWithCode(0), "");
}

#ifndef SPATE_TEST_THREAD_SANITIZED  // It creates no threads in the child of a fork.
// Runs in the child. Returns 0 if everything is right.
int use_after_fork(Loop& loop, std::vector<Offloading>& jobs) {
  ::alarm(20);
  if (offload(loop, [] {}, [] {}).error() != Error::loop_forked) return 1;
  jobs.pop_back();
  if (loop.after_fork()) return 2;
  int answer = 0;
  const auto job = offload(loop, [] { return 42; }, [&answer](int value) { answer = value; });
  if (!job || loop.run() || loop.has_work()) return 3;
  return answer == 42 ? 0 : 4;
}

TEST(OffloadFork, ChildHasItsOwnThreadsAndParentKeepsItsJobs) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  Gate gate;
  int done = 0;
  std::vector<Offloading> jobs;
  std::counting_semaphore<> begun(0);
  for (int i = 0; i < 8; ++i) {
    auto job = offload(*loop, [&] { begun.release(), gate.pass(); }, [&done] { ++done; });
    jobs.push_back(std::move(*job));
  }
  for (int i = 0; i < 4; ++i) begun.acquire();
  const int pid = ::fork();
  if (pid == 0) ::_exit(use_after_fork(*loop, jobs));
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  gate.open();
  EXPECT_FALSE(loop->run() || loop->has_work());
  EXPECT_EQ(done, 8);
}
#endif

TEST(OffloadFork, LoopWithJobsOfParentMayBeDestroyed) {
  std::unique_ptr<Loop> loop = *Loop::create();
  ThreadPool pool({.max_threads = 1});
  Gate gate;
  int done = 0;
  auto job = offload(*loop, [&gate] { gate.pass(); }, [&done] { ++done; }, pool);
  const int pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    loop.reset();
    job->cancel();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  gate.open();
  EXPECT_FALSE(loop->run() || loop->has_work());
  EXPECT_EQ(done, 1);
}

TEST(OffloadFork, ChildForkedInsideDoneReceivesNoOtherResults) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  auto pool = std::make_unique<ThreadPool>();
  int calls = 0;
  int pid = -1;
  std::vector<Result<Offloading>> jobs;
  for (int i = 0; i < 2; ++i) {
    jobs.push_back(offload(
        *loop, [] {},
        [&] {
          if (++calls == 1) pid = ::fork();
        },
        *pool));
  }
  pool.reset();  // Both results are posted.
  (void)loop->run(Run::once);
  if (pid == 0) {
    ::alarm(20);
    const bool told = !loop->after_fork() && !(loop->run() || loop->has_work());
    ::_exit(told && calls == 1 ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(loop->run() || loop->has_work());
  EXPECT_EQ(calls, 2);
}

void finish_from_inside() {
  const std::unique_ptr<Loop> loop = *Loop::create();
  auto pool = std::make_unique<ThreadPool>();
  const auto job = offload(*loop, [&pool] { pool.reset(); }, [] {}, *pool);
  (void)loop->run();
}

TEST(OffloadDeathTest, JobThatDestroysItsPoolTraps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(finish_from_inside(), "a job does not destroy its ThreadPool");
}

}  // namespace
}  // namespace spate::testing
