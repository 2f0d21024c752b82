// spate_loop_poll(): due events in batches, for programs that call their callbacks themselves.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <memory>

#include "base/fault.h"
#include "spate/c_loop.h"
#include "spate/timer.h"
#include "tests/c/c_loop.h"

namespace spate::testing {
namespace {

class BatchTest : public ::testing::Test {
 protected:
  CLoop loop_;
  Batch batch_{loop_};
  Flag a_{loop_};
  Flag b_{loop_};
  Flag c_{loop_};
};

TEST_F(BatchTest, DueEventsKeepTheirOrder) {
  b_.feed();
  a_.feed(SPATE_TIMER);
  ASSERT_EQ(batch_.poll(), 2);
  EXPECT_EQ(batch_[0].watcher, b_.watcher());
  EXPECT_EQ(batch_[0].events, SPATE_CUSTOM);
  EXPECT_EQ(batch_.claim(0), b_.watcher());
  EXPECT_EQ(batch_[1].events, SPATE_TIMER);
  EXPECT_EQ(batch_.claim(1), a_.watcher());
  EXPECT_EQ(batch_.poll(), 0);
}

TEST_F(BatchTest, EventsAreOrderedByPriority) {
  a_.feed();
  spate_set_priority(b_.watcher(), 2);
  b_.feed();
  ASSERT_EQ(batch_.poll(), 2);
  EXPECT_EQ(batch_[0].watcher, b_.watcher());
}

TEST_F(BatchTest, EventsOfStoppedWatchersAreSkipped) {
  a_.feed();
  b_.feed();
  ASSERT_EQ(batch_.poll(), 2);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
  spate_stop(b_.watcher());
  EXPECT_EQ(batch_[1].watcher, nullptr);
  EXPECT_EQ(batch_.claim(1), nullptr);
  EXPECT_EQ(batch_.poll(), 0);
}

TEST_F(BatchTest, StoppedAndFreedWatcherIsNotAccessed) {
  auto gone = std::make_unique<Flag>(loop_);
  gone->feed();
  ASSERT_EQ(batch_.poll(), 1);
  gone.reset();
  EXPECT_EQ(batch_.claim(0), nullptr);
}

TEST_F(BatchTest, EventIsClaimedOnce) {
  a_.feed();
  ASSERT_EQ(batch_.poll(), 1);
  EXPECT_NE(spate_is_pending(a_.watcher()), 0);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
  EXPECT_EQ(spate_is_pending(a_.watcher()), 0);
  EXPECT_EQ(batch_.claim(0), nullptr);
}

TEST_F(BatchTest, FedEventsAreMergedIntoBatch) {
  a_.feed();
  ASSERT_EQ(batch_.poll(), 1);
  a_.feed(SPATE_ASYNC);
  EXPECT_EQ(batch_[0].events, SPATE_CUSTOM | SPATE_ASYNC);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
  EXPECT_EQ(batch_.poll(), 0);
}

TEST_F(BatchTest, ClearPendingRemovesEventFromBatch) {
  a_.feed();
  ASSERT_EQ(batch_.poll(), 1);
  EXPECT_EQ(spate_clear_pending(a_.watcher()), SPATE_CUSTOM);
  EXPECT_EQ(batch_.claim(0), nullptr);
}

TEST_F(BatchTest, UnclaimedEventsReturnToNextPoll) {
  a_.feed();
  b_.feed();
  c_.feed();
  ASSERT_EQ(batch_.poll(), 3);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
  Batch inner{loop_};
  ASSERT_EQ(inner.poll(), 2);
  EXPECT_EQ(batch_.claim(1), nullptr);
  EXPECT_EQ(batch_.claim(2), nullptr);
  EXPECT_EQ(inner.claim(0), b_.watcher());
  EXPECT_EQ(inner.claim(1), c_.watcher());
}

TEST_F(BatchTest, UnclaimedEventsReturnToRun) {
  int calls = 0;
  spate_timer_fn* const count = [](spate_loop*, spate_timer* timer, std::uint32_t) {
    ++*static_cast<int*>(timer->watcher.data);
  };
  Flag called{loop_, count, &calls};
  called.feed();
  ASSERT_EQ(batch_.poll(), 1);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_NO_WAIT), 0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(batch_.claim(0), nullptr);
}

// Leaves as an interpreter does when called code throws.
[[gnu::noinline]] void leave_early(const CLoop& loop, std::jmp_buf& back) {
  spate_event due[4];
  if (spate_loop_poll(loop.get(), due, 4, 0) != 2) return;
  spate_event_claim(loop.get(), &due[0]);
  EXPECT_EQ(spate_loop_give_back(loop.get()), 0);
  std::longjmp(back, 1);
}

TEST_F(BatchTest, BatchCanBeLeftByLongjmp) {
  a_.feed();
  b_.feed();
  std::jmp_buf back;
  if (setjmp(back) == 0) {
    leave_early(loop_, back);
    FAIL();
  }
  ASSERT_EQ(batch_.poll(), 1);
  EXPECT_EQ(batch_.claim(0), b_.watcher());
}

TEST_F(BatchTest, BatchIsLimitedToItsArray) {
  a_.feed();
  b_.feed();
  c_.feed();
  Batch small{loop_, 2};
  ASSERT_EQ(small.poll(), 2);
  EXPECT_EQ(small.claim(0), a_.watcher());
  EXPECT_EQ(small.claim(1), b_.watcher());
  const std::uint64_t turns = spate_loop_iteration(loop_.get());
  ASSERT_EQ(small.poll(), 1);
  EXPECT_EQ(small.claim(0), c_.watcher());
  EXPECT_EQ(spate_loop_iteration(loop_.get()), turns);
}

TEST_F(BatchTest, ArrayIsRequired) {
  EXPECT_EQ(spate_loop_poll(loop_.get(), nullptr, 0, 0), -EINVAL);
}

TEST_F(BatchTest, BatchedOneShotTimerIsInactive) {
  EXPECT_EQ(spate_timer_restart(a_.timer(), kMillisecond), 0);
  ASSERT_EQ(batch_.poll(-1), 1);
  EXPECT_EQ(batch_[0].events, SPATE_TIMER);
  EXPECT_EQ(spate_is_active(a_.watcher()), 0);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
  EXPECT_EQ(spate_loop_has_work(loop_.get()), 0);
}

TEST_F(BatchTest, RestartingTimerRemovesItsExpiryFromBatch) {
  EXPECT_EQ(spate_timer_restart(a_.timer(), 0), 0);
  ASSERT_EQ(batch_.poll(-1), 1);
  EXPECT_EQ(spate_timer_restart(a_.timer(), kMillisecond), 0);
  EXPECT_EQ(batch_.claim(0), nullptr);
  ASSERT_EQ(batch_.poll(-1), 1);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
}

TEST_F(BatchTest, PollWaitsNoLongerThanRequested) {
  EXPECT_EQ(spate_timer_restart(a_.timer(), 3'600'000 * kMillisecond), 0);
  const std::int64_t before = spate_loop_now(loop_.get());
  EXPECT_EQ(batch_.poll(2 * kMillisecond), 0);
  EXPECT_GE(spate_loop_now(loop_.get()) - before, 2 * kMillisecond);
  EXPECT_EQ(spate_loop_active_count(loop_.get()), 1);
}

TEST_F(BatchTest, PollReturnsAtOnceIfNothingIsLeft) { EXPECT_EQ(batch_.poll(-1), 0); }

TEST_F(BatchTest, ReadyIoIsReturnedByEachPoll) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  spate_io io;
  spate_io_init(&io, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_io_set(&io, ends[1], SPATE_WRITE), 0);
  EXPECT_EQ(spate_io_start(&io), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(batch_.poll(-1), 1);
    EXPECT_EQ(batch_[0].events, SPATE_WRITE);
    EXPECT_EQ(batch_.claim(0), &io.watcher);
  }
  ASSERT_EQ(batch_.poll(-1), 1);
  EXPECT_EQ(spate_io_modify(&io, SPATE_READ), 0);
  EXPECT_EQ(batch_.claim(0), nullptr);
  spate_io_stop(&io);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(BatchTest, PrepareHooksPrecedeWaitAndCheckHooksFollowIt) {
  spate_hook prepare;
  spate_hook check;
  spate_hook_init(&prepare, loop_.get(), SPATE_HOOK_PREPARE, nullptr, nullptr);
  spate_hook_init(&check, loop_.get(), SPATE_HOOK_CHECK, nullptr, nullptr);
  EXPECT_EQ(spate_hook_start(&prepare), 0);
  EXPECT_EQ(spate_hook_start(&check), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(batch_.poll(-1), 1);
    EXPECT_EQ(batch_.claim(0), &prepare.watcher);
    // A timer that the prepare hook starts counts for the wait.
    EXPECT_EQ(spate_timer_restart(a_.timer(), kMillisecond), 0);
    ASSERT_EQ(batch_.poll(-1), 2);
    EXPECT_EQ(batch_.claim(0), a_.watcher());
    EXPECT_EQ(batch_.claim(1), &check.watcher);
  }
  spate_hook_stop(&prepare);
  spate_hook_stop(&check);
}

TEST_F(BatchTest, IdleHookKeepsPollFromSleeping) {
  spate_hook idle;
  spate_hook_init(&idle, loop_.get(), SPATE_HOOK_IDLE, nullptr, nullptr);
  EXPECT_EQ(spate_hook_start(&idle), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(batch_.poll(-1), 1);
    EXPECT_EQ(batch_[0].events, SPATE_IDLE);
    EXPECT_EQ(batch_.claim(0), &idle.watcher);
  }
  spate_hook_stop(&idle);
}

TEST_F(BatchTest, PollRunsPostsAndCxxWatchers) {
  int posted = 0;
  EXPECT_EQ(spate_post(loop_.get(), [](void* data) { ++*static_cast<int*>(data); }, &posted), 0);
  int ticks = 0;
  Timer timer{from_c(*loop_.get()), [&ticks] { ++ticks; }};
  EXPECT_TRUE(timer.start(Nanos{0}));
  a_.feed();
  ASSERT_EQ(batch_.poll(-1), 1);
  EXPECT_EQ(posted, 1);
  EXPECT_EQ(ticks, 1);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
}

TEST_F(BatchTest, PollReturnsWhenItOnlyRanCallbacks) {
  int posted = 0;
  EXPECT_EQ(spate_timer_restart(b_.timer(), 3'600'000 * kMillisecond), 0);
  EXPECT_EQ(spate_post(loop_.get(), [](void* data) { ++*static_cast<int*>(data); }, &posted), 0);
  a_.feed();
  Batch small{loop_, 1};
  ASSERT_EQ(small.poll(-1), 1);
  EXPECT_EQ(small.claim(0), a_.watcher());
  EXPECT_EQ(posted, 0);
  const std::uint64_t turns = spate_loop_iteration(loop_.get());
  EXPECT_EQ(small.poll(5'000 * kMillisecond), 0);
  EXPECT_EQ(posted, 1);
  EXPECT_EQ(spate_loop_iteration(loop_.get()), turns);
}

// A callback inside a poll may take a batch itself; the outer poll has the rest.
TEST_F(BatchTest, BatchMayBeTakenInsidePoll) {
  static int seen;
  seen = 0;
  a_.feed();
  Timer timer{from_c(*loop_.get()), [this] {
                Batch inner{loop_};
                seen = inner.poll();
                EXPECT_EQ(inner.claim(0), a_.watcher());
                EXPECT_EQ(spate_loop_give_back(loop_.get()), 0);
              }};
  EXPECT_TRUE(timer.feed());
  b_.feed();
  ASSERT_EQ(batch_.poll(), 1);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(batch_.claim(0), b_.watcher());
}

TEST_F(BatchTest, NoEventIsLostWhenMemoryRunsOut) {
  a_.feed();
  ASSERT_EQ(batch_.poll(), 1);
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope{plan};
    EXPECT_EQ(spate_loop_give_back(loop_.get()), -ENOMEM);
    Batch inner{loop_};
    EXPECT_EQ(inner.poll(), -ENOMEM);
    EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_NO_WAIT), -ENOMEM);
  }
  EXPECT_EQ(batch_.claim(0), a_.watcher());
}

TEST_F(BatchTest, EventCountsAsWorkUntilItIsClaimed) {
  spate_set_keepalive(a_.watcher(), 0);
  EXPECT_EQ(spate_timer_restart(a_.timer(), 0), 0);
  EXPECT_EQ(spate_timer_restart(b_.timer(), 3'600'000 * kMillisecond), 0);
  ASSERT_EQ(batch_.poll(), 1);
  EXPECT_EQ(spate_loop_has_work(loop_.get()), 1);
  EXPECT_EQ(spate_loop_pending_count(loop_.get()), 1u);
  spate_timer_stop(b_.timer());
  EXPECT_EQ(spate_loop_has_work(loop_.get()), 1);
  EXPECT_EQ(batch_.claim(0), a_.watcher());
  EXPECT_EQ(spate_loop_has_work(loop_.get()), 0);
  EXPECT_EQ(spate_loop_pending_count(loop_.get()), 0u);
}

TEST_F(BatchTest, ForkedChildMustCallAfterFork) {
  a_.feed();
  const int pid = ::fork();
  if (pid == 0) {
    const bool refused = batch_.poll() == SPATE_E_LOOP_FORKED;
    const bool forked = spate_loop_after_fork(loop_.get()) == 0;
    ::_exit(refused && forked && batch_.poll() == 1 && batch_.claim(0) == a_.watcher() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(BatchTest, ChildRunsForkHooksOnce) {
  spate_hook hook;
  spate_hook_init(&hook, loop_.get(), SPATE_HOOK_FORK, nullptr, nullptr);
  EXPECT_EQ(spate_hook_start(&hook), 0);
  EXPECT_EQ(batch_.poll(), 0);
  const int pid = ::fork();
  if (pid == 0) {
    const bool came = spate_loop_after_fork(loop_.get()) == 0 && batch_.poll() == 1 &&
                      batch_[0].events == SPATE_FORK && batch_.claim(0) == &hook.watcher;
    ::_exit(came && batch_.poll() == 0 && batch_.poll() == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(batch_.poll(), 0);
  spate_hook_stop(&hook);
}

TEST_F(BatchTest, EndsWithLoop) {
  spate_loop* loop = nullptr;
  ASSERT_EQ(spate_loop_create(&loop, nullptr), 0);
  spate_timer timer;
  spate_timer_init(&timer, loop, nullptr, nullptr);
  EXPECT_EQ(spate_feed(&timer.watcher, SPATE_CUSTOM), 0);
  spate_event due[1];
  ASSERT_EQ(spate_loop_poll(loop, due, 1, 0), 1);
  spate_loop_destroy(loop);
  EXPECT_EQ(due[0].watcher, nullptr);
  EXPECT_EQ(spate_is_pending(&timer.watcher), 0);
  spate_timer_stop(&timer);
}

}  // namespace
}  // namespace spate::testing
