// Watchers of signals, children, paths and the wall clock when the kernel refuses a resource that
// they need.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/child.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "spate/timer.h"
#include "system/open_fds.h"
#include "tests/support/backends.h"
#include "tests/support/make_loop.h"
#include "tests/support/scripted.h"
#include "tests/support/system_error.h"

namespace spate {
namespace {

using testing::make_loop;
using testing::ScriptedLoop;
using testing::system_error;

// A child that ends on request.
class ChildProcess {
 public:
  ChildProcess() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::close(ends_[1]);
    char byte;
    while (::read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
    ::_exit(7);
  }
  ~ChildProcess() {
    end();
    ::close(ends_[0]);
    ::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  void end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2];
  int pid_;
};

// ---- children

// Runs until the child is reported, or a guard timer expires.
struct Reported {
  explicit Reported(Loop& loop) : child(loop, bind<&Reported::on_child>(this)), guard(loop, [] {}) {
    guard.set_callback([this] {
      gave_up = true;
      child.loop().stop_all();
    });
  }
  void on_child(Events e) {
    ++calls;
    events = e;
    child.loop().stop();
  }
  void run(ChildProcess& process) {
    guard.start(std::chrono::seconds{3});
    process.end();
    while (calls == 0 && !gave_up) ASSERT_FALSE(child.loop().run());
    guard.stop();
    EXPECT_FALSE(gave_up) << "the end of the child was missed";
  }

  Child child;
  Timer guard;
  int calls = 0;
  Events events = Events::none;
  bool gave_up = false;
};

class ChildFaults : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ChildFaults, SignalIsUsedWithoutPidfds) {
  for (const int error : {ENOSYS, EPERM, EINVAL}) {
    const auto loop = make_loop(GetParam());
    FaultPlan plan;
    plan.fail_nth(SystemCall::pidfd_open, 1, error, 10);
    const FaultScope scope(plan);
    ChildProcess process;
    Reported reported(*loop);
    ASSERT_FALSE(reported.child.start(process.pid()));
    reported.run(process);
    EXPECT_EQ(reported.events, Events::child);
    EXPECT_EQ(reported.child.exit_code(), 7);
    EXPECT_EQ(loop->active_count(), 0);
  }
}

TEST_P(ChildFaults, ExitBeforeSignalIsWatchedIsReported) {
  const auto loop = make_loop(GetParam());
  FaultPlan plan;
  plan.fail_nth(SystemCall::pidfd_open, 1, ENOSYS);
  const FaultScope scope(plan);
  ChildProcess process;
  process.end();
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  Reported reported(*loop);
  ASSERT_FALSE(reported.child.start(process.pid()));
  reported.run(process);
  EXPECT_EQ(reported.child.exit_code(), 7);
}

TEST_P(ChildFaults, StartReportsFaults) {
  struct Refusal {
    SystemCall call;
    int error;
  };
  for (const Refusal refusal :
       {Refusal{SystemCall::pidfd_open, EMFILE}, Refusal{SystemCall::pidfd_open, ENFILE},
        Refusal{SystemCall::pidfd_open, ENOMEM}, Refusal{SystemCall::waitid, ECHILD}}) {
    const auto loop = make_loop(GetParam());
    ChildProcess process;
    const auto before = testing::open_fds();
    Child child(*loop, [] { ADD_FAILURE(); });
    FaultPlan plan;
    plan.fail_nth(refusal.call, 1, refusal.error);
    const FaultScope scope(plan);
    EXPECT_EQ(child.start(process.pid()), system_error(refusal.error));
    EXPECT_FALSE(child.is_active());
    EXPECT_EQ(loop->active_count(), 0);
    EXPECT_EQ(testing::open_fds(), before);
  }
}

TEST_P(ChildFaults, StartReportsThatSignalCannotBeWatched) {
  const auto loop = make_loop(GetParam());
  ChildProcess process;
  Child child(*loop, [] { ADD_FAILURE(); });
  FaultPlan plan;
  plan.fail_nth(SystemCall::pidfd_open, 1, ENOSYS, 2).fail_nth(SystemCall::sigaction, 1, EINVAL);
  const FaultScope scope(plan);
  EXPECT_EQ(child.start(process.pid()), system_error(EINVAL));
  EXPECT_FALSE(child.is_active());
  EXPECT_EQ(loop->active_count(), 0);
  Reported reported(*loop);
  ASSERT_FALSE(reported.child.start(process.pid())) << "and it works when it is tried again";
  reported.run(process);
}

TEST_P(ChildFaults, InterruptedWaitLosesNoExit) {
  for (const int pidfd_error : {0, ENOSYS}) {
    const auto loop = make_loop(GetParam());
    ChildProcess process;
    Reported reported(*loop);
    FaultPlan plan;
    if (pidfd_error != 0) plan.fail_nth(SystemCall::pidfd_open, 1, pidfd_error);
    plan.fail_nth(SystemCall::waitid, 3, EINTR, 2).fail_nth(SystemCall::waitid, 2, EINTR);
    const FaultScope scope(plan);
    ASSERT_FALSE(reported.child.start(process.pid()));
    reported.run(process);
    EXPECT_EQ(reported.events, Events::child);
  }
}

TEST_P(ChildFaults, StatusReapedElsewhereIsReported) {
  const auto loop = make_loop(GetParam());
  ChildProcess process;
  Reported reported(*loop);
  ASSERT_FALSE(reported.child.start(process.pid()));
  process.end();
  ASSERT_EQ(::waitpid(process.pid(), nullptr, 0), process.pid());
  reported.run(process);
  EXPECT_EQ(reported.events, Events::child | Events::error);
  EXPECT_EQ(reported.child.status(), -1);
}

INSTANTIATE_TEST_SUITE_P(Backends, ChildFaults, ::testing::ValuesIn(testing::backends_here()),
                         testing::backend_test_name);

TEST(ChildOnEpoll, IsStillReportedWhenItsPidfdIsRefused) {
  const auto loop = make_loop();
  ChildProcess process;
  Reported reported(*loop);
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::epoll_ctl, 1, ENOSPC);
    const FaultScope scope(plan);
    ASSERT_FALSE(reported.child.start(process.pid()));
    loop->run(Run::no_wait);
  }
  reported.run(process);
}

TEST(ChildAfterFork, NoLongerKeepsLoopAlive) {
  for (const Child::Report report : {Child::Report::exit, Child::Report::exit_stop_continue}) {
    const auto loop = make_loop();
    ChildProcess process;
    Child child(*loop, [] { ADD_FAILURE(); });
    ASSERT_FALSE(child.start(process.pid(), report));
    ASSERT_FALSE(loop->after_fork());
    EXPECT_FALSE(child.is_active());
    EXPECT_EQ(loop->active_count(), 0);
  }
}

// ---- signals

TEST(SignalFaults, AreReportedByStart) {
  const auto loop = make_loop();
  Signal signal(*loop, [] {});
  FaultPlan plan;
  plan.fail_nth(SystemCall::sigaction, 1, EINVAL);
  const FaultScope scope(plan);
  EXPECT_EQ(signal.start(SIGUSR2), system_error(EINVAL));
  EXPECT_FALSE(signal.is_active());
  EXPECT_EQ(loop->active_count(), 0);
  EXPECT_FALSE(signal.start(SIGUSR2));
}

// A repeated attempt would fail again, and stop() would not return.
TEST(SignalFaults, StopTriesOnceToReadAction) {
  const auto loop = make_loop();
  Signal signal(*loop, [] {});
  EXPECT_FALSE(signal.start(SIGUSR2));
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::sigaction, 1, EINVAL);
    const FaultScope scope(plan);
    signal.stop();
    EXPECT_EQ(plan.calls(SystemCall::sigaction), 1u);
  }
  EXPECT_FALSE(signal.start(SIGUSR2));  // Its action is still ours.
  signal.stop();
}

TEST(ChildFaults, ReportOutOfMemoryForPidfdAndLeakNone) {
  const auto loop = make_loop();
  ChildProcess process;
  std::vector<int> taken;
  for (int i = 0; i < 64; ++i) taken.push_back(::dup(0));  // Its pidfd will exceed the table.
  Child child(*loop, [] {});
  const std::vector<int> before = testing::open_fds();
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    EXPECT_EQ(child.start(process.pid()), system_error(ENOMEM));
  }
  EXPECT_FALSE(child.is_active());
  EXPECT_EQ(testing::open_fds(), before);
  EXPECT_FALSE(child.start(process.pid()));
  EXPECT_TRUE(child.is_active());
  for (const int fd : taken) ::close(fd);
}

// ---- paths

class StatFaults : public ::testing::Test {
 protected:
  StatFaults() : path_(::testing::TempDir() + "spate_stat_" + std::to_string(::getpid())) {
    grow();
  }
  ~StatFaults() override { ::unlink(path_.c_str()); }

  void grow() {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    EXPECT_EQ(::write(fd, "x", 1), 1);
    ::close(fd);
  }
  void turn_until_called(int turns) {
    for (int turn = 0; turn < turns && calls_ == 0; ++turn) {
      ASSERT_FALSE(scripted_.loop->run(Run::once));
    }
  }
  // During the waits the polling interval passes.
  void expect_change_is_polled() {
    turn_until_called(4);
    EXPECT_EQ(calls_, 0);
    grow();
    turn_until_called(4);
    EXPECT_EQ(calls_, 1);
    EXPECT_EQ(stat_.current().size, stat_.previous().size + 1);
  }

  ScriptedLoop scripted_;
  std::string path_;
  int calls_ = 0;
  Stat stat_{*scripted_.loop, [this] { ++calls_; }};
};

TEST_F(StatFaults, PathIsPolledWithoutInotify) {
  for (const int error : {EMFILE, ENOSYS, ENOMEM}) {
    calls_ = 0;
    FaultPlan plan;
    plan.fail_nth(SystemCall::inotify_init, 1, error, 10);
    const FaultScope scope(plan);
    ASSERT_FALSE(stat_.start(path_));
    expect_change_is_polled();
    stat_.stop();
    EXPECT_EQ(scripted_.loop->active_count(), 0);
  }
}

TEST_F(StatFaults, PathIsPolledWithoutInotifyWatch) {
  for (const int error : {ENOSPC, ENOMEM}) {
    calls_ = 0;
    FaultPlan plan;
    plan.fail_nth(SystemCall::inotify_add_watch, 1, error, 10);
    const FaultScope scope(plan);
    ASSERT_FALSE(stat_.start(path_));
    expect_change_is_polled();
    stat_.stop();
  }
}

TEST_F(StatFaults, PathIsPolledIfInotifyCannotBeWatched) {
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  scripted_.backend->refusals[next] = -ENOSPC;  // The number that inotify will get.
  ASSERT_FALSE(stat_.start(path_));
  Timer often(*scripted_.loop, [] {});
  often.start(std::chrono::seconds{1}, std::chrono::seconds{1});
  ASSERT_FALSE(scripted_.loop->run(Run::once));
  grow();
  turn_until_called(20);
  EXPECT_EQ(calls_, 1) << "the change was missed";
}

TEST_F(StatFaults, InaccessiblePathCountsAsMissing) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::lstat, 1, EACCES).fail_nth(SystemCall::inotify_init, 1, EMFILE, 100);
  const FaultScope scope(plan);
  ASSERT_FALSE(stat_.start(path_));
  EXPECT_FALSE(stat_.current().exists());
  turn_until_called(4);
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(stat_.current().exists());
  EXPECT_FALSE(stat_.previous().exists());
}

TEST_F(StatFaults, StartReportsThatMemoryRanOut) {
  bool started = false;
  for (std::uint64_t nth = 1; !started; ++nth) {
    ASSERT_LT(nth, 20u);
    ScriptedLoop fresh;
    Stat stat(*fresh.loop, [] {});
    FaultPlan plan;
    plan.fail_nth(SystemCall::inotify_init, 1, EMFILE).fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    const std::error_code error = stat.start(path_);
    started = !error;
    EXPECT_EQ(stat.is_active(), started);
    EXPECT_EQ(fresh.loop->active_count(), started ? 1 : 0);
    EXPECT_TRUE(started || error == system_error(ENOMEM));
  }
}

TEST_F(StatFaults, NoDescriptorIsLeaked) {
  const auto before = testing::open_fds();
  for (const SystemCall call :
       {SystemCall::inotify_init, SystemCall::inotify_add_watch, SystemCall::lstat}) {
    FaultPlan plan;
    plan.fail_nth(call, 1, ENOMEM, 3);
    const FaultScope scope(plan);
    ASSERT_FALSE(stat_.start(path_));
    stat_.stop();
    EXPECT_EQ(testing::open_fds(), before);
  }
}

TEST_F(StatFaults, PollingStopsWhenInotifyBecomesAvailable) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::inotify_add_watch, 1, ENOSPC);
  const FaultScope scope(plan);
  ASSERT_FALSE(stat_.start(path_));
  EXPECT_EQ(scripted_.loop->metrics().active_timers, 1u);
  ASSERT_FALSE(scripted_.loop->run(Run::once));
  EXPECT_EQ(scripted_.loop->metrics().active_timers, 0u);
  EXPECT_EQ(calls_, 0);
}

// ---- the wall clock

class PeriodicFaults : public ::testing::Test {
 protected:
  void expect_looks_every_minute() {
    EXPECT_FALSE(scripted_.loop->run(Run::no_wait));  // Before the first wall-clock timer.
    periodic_.start_at(scripted_.clock.wall() + std::chrono::hours{1});
    while (calls_ == 0) {
      ASSERT_FALSE(scripted_.loop->run(Run::once));
      ASSERT_LE(scripted_.backend->waits.back(), std::chrono::minutes{1});
    }
    EXPECT_GE(scripted_.loop->wall_now(), periodic_.at());
    EXPECT_EQ(scripted_.loop->active_count(), 0);
  }

  std::set<int> registered() const {
    std::set<int> fds;
    for (const auto& [fd, registration] : scripted_.backend->registered) fds.insert(fd);
    return fds;
  }

  ScriptedLoop scripted_;
  int calls_ = 0;
  Periodic periodic_{*scripted_.loop, [this] { ++calls_; }};
};

TEST_F(PeriodicFaults, ClockIsPolledEveryMinuteWithoutTimerfd) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::timerfd_create, 1, EMFILE);
  const FaultScope scope(plan);
  expect_looks_every_minute();
}

TEST_F(PeriodicFaults, ClockIsPolledEveryMinuteIfTimerfdCannotBeArmed) {
  const auto before = testing::open_fds();
  FaultPlan plan;
  plan.fail_nth(SystemCall::timerfd_settime, 1, EINVAL);
  const FaultScope scope(plan);
  expect_looks_every_minute();
  EXPECT_EQ(testing::open_fds(), before);
}

TEST_F(PeriodicFaults, ClockIsPolledEveryMinuteIfTimerfdCannotBeWatched) {
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  scripted_.backend->refusals[next] = -ENOSPC;
  expect_looks_every_minute();
}

TEST_F(PeriodicFaults, StartReportsThatMemoryRanOut) {
  bool started = false;
  for (std::uint64_t nth = 1; !started; ++nth) {
    ASSERT_LT(nth, 20u);
    ScriptedLoop fresh;
    Periodic periodic(*fresh.loop, [] {});
    FaultPlan plan;
    plan.fail_nth(SystemCall::timerfd_create, 1, EMFILE)
        .fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    started = periodic.start_every(std::chrono::hours{1});
    EXPECT_EQ(periodic.is_active(), started);
    EXPECT_EQ(fresh.loop->active_count(), started ? 1 : 0);
  }
}

TEST_F(PeriodicFaults, ClockChangeDuringSleepIsDetected) {
  const std::set<int> before = registered();
  periodic_.start_at(scripted_.clock.wall() + std::chrono::hours{1});
  ASSERT_FALSE(scripted_.loop->run(Run::no_wait));
  std::set<int> now = registered();
  for (const int fd : before) now.erase(fd);
  ASSERT_EQ(now.size(), 1u) << "the descriptor that the kernel makes ready when the clock is set";
  scripted_.clock.jump_wall(std::chrono::hours{2});
  scripted_.backend->report(*now.begin(), Events::read);
  ASSERT_FALSE(scripted_.loop->run(Run::once));
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace spate
