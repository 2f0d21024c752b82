// The parts of C's watchers that C++'s do not have, and their errors for wrong arguments.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "base/fault.h"
#include "spate/c_loop.h"
#include "spate/loop.h"
#include "tests/c/c_loop.h"

namespace spate::testing {
namespace {

class CWatcherTest : public ::testing::Test {
 protected:
  std::int64_t kept_alive_by() const { return spate_loop_active_count(loop_.get()); }
  int run(spate_run_mode mode = SPATE_RUN_UNTIL_DONE) { return spate_loop_run(loop_.get(), mode); }

  CLoop loop_;
  Flag timer_{loop_};
};

// ---- timers

TEST_F(CWatcherTest, TimerStartsWithItsSetValues) {
  EXPECT_EQ(spate_timer_set(timer_.timer(), 5 * kMillisecond, 7 * kMillisecond), 0);
  EXPECT_EQ(spate_is_active(timer_.watcher()), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 5 * kMillisecond);
  EXPECT_EQ(spate_timer_start(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 5 * kMillisecond);
  EXPECT_EQ(spate_timer_repeat(timer_.timer()), 7 * kMillisecond);
}

TEST_F(CWatcherTest, StoppedTimerResumesWithRemainingTime) {
  EXPECT_EQ(spate_timer_set(timer_.timer(), 3'600'000 * kMillisecond, 0), 0);
  EXPECT_EQ(spate_timer_start(timer_.timer()), 0);
  EXPECT_EQ(spate_loop_run_for(loop_.get(), 2 * kMillisecond), 0);
  const std::int64_t left = spate_timer_remaining(timer_.timer());
  EXPECT_LE(left, 3'599'998 * kMillisecond);
  spate_timer_stop(timer_.timer());
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), left);
  EXPECT_EQ(spate_timer_start(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), left);
}

TEST_F(CWatcherTest, ExpiredTimerHasNoRemainingTime) {
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 0), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_start(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(kept_alive_by(), 0);
}

TEST_F(CWatcherTest, SettingActiveTimerRestartsIt) {
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 5 * kMillisecond), 0);
  EXPECT_EQ(spate_timer_set(timer_.timer(), 9 * kMillisecond, 1), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 9 * kMillisecond);
  EXPECT_EQ(spate_timer_repeat(timer_.timer()), 1);
  EXPECT_EQ(kept_alive_by(), 1);
}

TEST_F(CWatcherTest, AgainStopsTimerThatDoesNotRepeat) {
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 5 * kMillisecond), 0);
  EXPECT_EQ(spate_timer_again(timer_.timer()), 0);
  EXPECT_EQ(spate_is_active(timer_.watcher()), 0);
  spate_timer_set_repeat(timer_.timer(), 2 * kMillisecond);
  EXPECT_EQ(spate_timer_again(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 2 * kMillisecond);
}

TEST_F(CWatcherTest, TimesOfTimerAreBounded) {
  EXPECT_EQ(spate_timer_set(timer_.timer(), -5, -7), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_repeat(timer_.timer()), 0);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), INT64_MAX), 0);
  EXPECT_GT(spate_timer_remaining(timer_.timer()), INT64_MAX / 4);
  EXPECT_EQ(spate_loop_run_for(loop_.get(), 0), 0);
}

TEST_F(CWatcherTest, TimerThatFailsToStartWithoutMemoryIsInactive) {
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope{plan};
  EXPECT_EQ(spate_timer_set(timer_.timer(), 5, 0), 0);
  EXPECT_EQ(spate_timer_start(timer_.timer()), -ENOMEM);
  EXPECT_EQ(spate_is_active(timer_.watcher()), 0);
  EXPECT_EQ(spate_timer_remaining(timer_.timer()), 5);
  EXPECT_EQ(kept_alive_by(), 0);
}

// ---- keepalive

TEST_F(CWatcherTest, RunDoesNotWaitForWatchersWithoutKeepalive) {
  spate_set_keepalive(timer_.watcher(), 0);
  EXPECT_EQ(spate_keepalive(timer_.watcher()), 0);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 3'600'000 * kMillisecond), 0);
  EXPECT_EQ(kept_alive_by(), 0);
  EXPECT_EQ(run(), 0);
  spate_timer_stop(timer_.timer());
  EXPECT_EQ(kept_alive_by(), 0);
}

TEST_F(CWatcherTest, KeepaliveMayChangeAtAnyTime) {
  EXPECT_EQ(spate_keepalive(timer_.watcher()), 1);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), kMillisecond), 0);
  EXPECT_EQ(kept_alive_by(), 1);
  spate_set_keepalive(timer_.watcher(), 0);
  spate_set_keepalive(timer_.watcher(), 0);
  EXPECT_EQ(kept_alive_by(), 0);
  spate_set_keepalive(timer_.watcher(), 1);
  spate_set_keepalive(timer_.watcher(), 1);
  EXPECT_EQ(kept_alive_by(), 1);
  EXPECT_EQ(spate_keepalive(timer_.watcher()), 1);
}

TEST_F(CWatcherTest, ExpiredOneShotIsCountedCorrectly) {
  spate_set_keepalive(timer_.watcher(), 0);
  Flag other{loop_};
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 0), 0);
  EXPECT_EQ(spate_timer_restart(other.timer(), kMillisecond), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(kept_alive_by(), 0);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 0), 0);
  EXPECT_EQ(kept_alive_by(), 0);
  spate_set_keepalive(timer_.watcher(), 1);
  EXPECT_EQ(kept_alive_by(), 1);
}

TEST_F(CWatcherTest, ClaimedOneShotIsCountedCorrectly) {
  spate_set_keepalive(timer_.watcher(), 0);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 0), 0);
  Batch batch{loop_};
  ASSERT_EQ(batch.poll(), 1);
  EXPECT_EQ(batch.claim(0), timer_.watcher());
  EXPECT_EQ(kept_alive_by(), 0);
}

TEST_F(CWatcherTest, TimerWithoutKeepaliveMayBeStoppedOrClearedAfterExpiry) {
  spate_set_keepalive(timer_.watcher(), 0);
  Batch batch{loop_};
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 0), 0);
  ASSERT_EQ(batch.poll(), 1);
  spate_timer_stop(timer_.timer());
  EXPECT_EQ(kept_alive_by(), 0);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 0), 0);
  ASSERT_EQ(batch.poll(), 1);
  EXPECT_EQ(spate_clear_pending(timer_.watcher()), SPATE_TIMER);
  EXPECT_EQ(kept_alive_by(), 0);
}

TEST_F(CWatcherTest, ChildWithoutKeepaliveIsCountedCorrectlyAfterFork) {
  const int sleeper = ::fork();
  if (sleeper == 0) {
    for (;;) ::pause();
  }
  spate_child child;
  spate_child_init(&child, loop_.get(), nullptr, nullptr);
  spate_set_keepalive(&child.watcher, 0);
  EXPECT_EQ(spate_child_set(&child, sleeper, 0), 0);
  EXPECT_EQ(spate_child_start(&child), 0);
  EXPECT_EQ(spate_timer_restart(timer_.timer(), 3'600'000 * kMillisecond), 0);
  const int forked = ::fork();
  if (forked == 0) {
    const bool right = spate_loop_after_fork(loop_.get()) == 0 && kept_alive_by() == 1 &&
                       spate_is_active(&child.watcher) == 0;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kept_alive_by(), 1);
  spate_child_stop(&child);
  ::kill(sleeper, SIGKILL);
  ::waitpid(sleeper, nullptr, 0);
}

TEST_F(CWatcherTest, ForkAndCleanupHooksDoNotKeepLoopAlive) {
  for (const spate_hook_kind kind : {SPATE_HOOK_FORK, SPATE_HOOK_CLEANUP}) {
    spate_hook hook;
    spate_hook_init(&hook, loop_.get(), kind, nullptr, nullptr);
    spate_set_keepalive(&hook.watcher, 0);
    EXPECT_EQ(spate_hook_start(&hook), 0);
    EXPECT_EQ(kept_alive_by(), 0);
    spate_hook_stop(&hook);
    EXPECT_EQ(kept_alive_by(), 0);
  }
}

// ---- priorities

TEST_F(CWatcherTest, PriorityIsClamped) {
  EXPECT_EQ(spate_set_priority(timer_.watcher(), 7), 0);
  EXPECT_EQ(spate_priority(timer_.watcher()), 2);
  EXPECT_EQ(spate_set_priority(timer_.watcher(), -7), 0);
  EXPECT_EQ(spate_priority(timer_.watcher()), -2);
}

TEST_F(CWatcherTest, PriorityMayBeSetWhilePendingAndActive) {
  spate_io io;
  spate_io_init(&io, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_io_set(&io, STDERR_FILENO, SPATE_WRITE), 0);
  EXPECT_EQ(spate_io_start(&io), 0);
  EXPECT_EQ(spate_feed(&io.watcher, SPATE_CUSTOM), 0);
  EXPECT_EQ(spate_set_priority(&io.watcher, 1), 0);
  EXPECT_EQ(spate_is_pending(&io.watcher), 0);
  EXPECT_NE(spate_is_active(&io.watcher), 0);
  EXPECT_EQ(kept_alive_by(), 1);
  spate_io_stop(&io);
}

// ---- wrong arguments, and errors of the system

TEST_F(CWatcherTest, UnsetIoDoesNotStart) {
  spate_io io;
  spate_io_init(&io, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_io_start(&io), -EINVAL);
  EXPECT_EQ(spate_io_start_now(&io), -EINVAL);
  EXPECT_EQ(spate_io_set(&io, -1, SPATE_READ), -EINVAL);
  EXPECT_EQ(spate_io_set(&io, 0, SPATE_TIMER), -EINVAL);
  EXPECT_EQ(spate_io_modify(&io, 0x80), -EINVAL);
}

TEST_F(CWatcherTest, PausedIoStopsStartsAndHasPriority) {
  spate_io io;
  static int calls;
  calls = 0;
  spate_io_init(&io, loop_.get(), [](spate_loop*, spate_io*, std::uint32_t) { ++calls; }, nullptr);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(spate_io_set(&io, ends[1], SPATE_WRITE), 0);
  EXPECT_EQ(spate_io_start(&io), 0);
  EXPECT_EQ(spate_io_modify(&io, 0), 0);
  EXPECT_EQ(spate_set_priority(&io.watcher, 1), 0);
  EXPECT_NE(spate_is_active(&io.watcher), 0);
  spate_io_stop(&io);
  EXPECT_EQ(spate_io_start(&io), 0);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_NO_WAIT), 0);
  EXPECT_EQ(calls, 0);
  spate_io_stop(&io);
  EXPECT_EQ(spate_io_start_now(&io), 0);
  EXPECT_EQ(spate_io_modify(&io, SPATE_WRITE), 0);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_NO_WAIT), 0);
  EXPECT_EQ(calls, 1);
  spate_io_stop(&io);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(CWatcherTest, ClosedDescriptorIsRefused) {
  spate_io io;
  static int error;
  error = 0;
  spate_io_init(
      &io, loop_.get(),
      [](spate_loop*, spate_io* refused, std::uint32_t events) {
        EXPECT_NE(events & SPATE_ERROR, 0u);
        error = spate_io_error(refused);
      },
      nullptr);
  const int closed = ::dup(STDERR_FILENO);
  ::close(closed);
  EXPECT_EQ(spate_io_set(&io, closed, SPATE_READ), 0);
  EXPECT_EQ(spate_io_start_now(&io), -EBADF);
  EXPECT_EQ(spate_io_start(&io), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(error, -EBADF);
  EXPECT_EQ(spate_is_active(&io.watcher), 0);
}

TEST_F(CWatcherTest, SettingActiveIoRestartsIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  spate_io io;
  spate_io_init(&io, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_io_set(&io, ends[0], SPATE_READ), 0);
  EXPECT_EQ(spate_io_start(&io), 0);
  EXPECT_EQ(spate_io_set(&io, ends[1], SPATE_WRITE), 0);
  EXPECT_EQ(spate_io_fd(&io), ends[1]);
  EXPECT_EQ(spate_io_events(&io), SPATE_WRITE);
  Batch batch{loop_};
  ASSERT_EQ(batch.poll(-1), 1);
  EXPECT_EQ(batch[0].events, SPATE_WRITE);
  spate_io_stop(&io);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(CWatcherTest, WrongSignalsChildrenAndPathsAreErrors) {
  spate_signal signal;
  spate_signal_init(&signal, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_signal_start(&signal), -EINVAL);
  EXPECT_EQ(spate_signal_set(&signal, SIGKILL), -EINVAL);
  EXPECT_EQ(spate_signal_start(&signal), -EINVAL);
  spate_child child;
  spate_child_init(&child, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_child_start(&child), -EINVAL);
  EXPECT_EQ(spate_child_set(&child, 1, 0), 0);
  EXPECT_EQ(spate_child_start(&child), -ECHILD);
  spate_stat stat;
  spate_stat_init(&stat, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_stat_start(&stat), -EINVAL);
  spate_periodic periodic;
  spate_periodic_init(&periodic, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_periodic_set(&periodic, 0, -1, nullptr), -EINVAL);
  EXPECT_EQ(kept_alive_by(), 0);
}

// ---- watchers of any kind

// It has the new values then, and starts with others.
TEST_F(CWatcherTest, WatcherIsInactiveIfItCannotStartWithNewValues) {
  constexpr int kOfTheLibrary = 32;  // The C library uses this signal.
  spate_signal signal;
  spate_signal_init(&signal, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_signal_set(&signal, SIGUSR2), 0);
  EXPECT_EQ(spate_signal_start(&signal), 0);
  EXPECT_EQ(spate_signal_set(&signal, kOfTheLibrary), -EINVAL);
  EXPECT_FALSE(spate_is_active(&signal.watcher));
  EXPECT_EQ(spate_signal_signum(&signal), kOfTheLibrary);
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  spate_child child;
  spate_child_init(&child, loop_.get(), nullptr, nullptr);
  EXPECT_EQ(spate_child_set(&child, pid, 0), 0);
  EXPECT_EQ(spate_child_start(&child), 0);
  EXPECT_EQ(spate_child_set(&child, 1, 0), -ECHILD);
  EXPECT_FALSE(spate_is_active(&child.watcher));
  EXPECT_EQ(spate_child_pid(&child), 1);
  EXPECT_EQ(kept_alive_by(), 0);
  EXPECT_EQ(spate_signal_set(&signal, SIGUSR2), 0);
  EXPECT_EQ(spate_signal_start(&signal), 0);
  EXPECT_EQ(spate_child_set(&child, pid, 0), 0);
  EXPECT_EQ(spate_child_start(&child), 0);
  EXPECT_EQ(kept_alive_by(), 2);
  spate_signal_stop(&signal);
  EXPECT_EQ(run(), 0);
}

TEST_F(CWatcherTest, GenericStartAndStopMatchKind) {
  spate_hook hook;
  spate_hook_init(&hook, loop_.get(), SPATE_HOOK_CHECK, nullptr, this);
  EXPECT_EQ(hook.watcher.data, this);
  EXPECT_EQ(spate_watcher_loop(&hook.watcher), loop_.get());
  EXPECT_EQ(spate_start(&hook.watcher), 0);
  EXPECT_EQ(spate_start(timer_.watcher()), 0);
  EXPECT_EQ(kept_alive_by(), 2);
  spate_stop(&hook.watcher);
  spate_stop(timer_.watcher());
  EXPECT_EQ(kept_alive_by(), 0);
}

TEST_F(CWatcherTest, MayOutliveItsLoop) {
  spate_loop* loop = nullptr;
  ASSERT_EQ(spate_loop_create(&loop, nullptr), 0);
  spate_timer timer;
  spate_async async;
  spate_timer_init(&timer, loop, nullptr, nullptr);
  spate_async_init(&async, loop, nullptr, nullptr);
  spate_set_keepalive(&timer.watcher, 0);
  EXPECT_EQ(spate_timer_restart(&timer, 1), 0);
  EXPECT_EQ(spate_async_start(&async), 0);
  spate_async_send(&async);
  spate_loop_destroy(loop);
  spate_stop(&timer.watcher);
  spate_stop(&async.watcher);
  EXPECT_EQ(spate_clear_pending(&timer.watcher), 0u);
}

TEST_F(CWatcherTest, InvokeCallsItsCallback) {
  static std::uint32_t seen;
  seen = 0;
  Flag flag{loop_, [](spate_loop*, spate_timer*, std::uint32_t events) { seen = events; }};
  spate_invoke(flag.watcher(), SPATE_CUSTOM);
  EXPECT_EQ(seen, SPATE_CUSTOM);
}

}  // namespace
}  // namespace spate::testing
