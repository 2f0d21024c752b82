// A real fork: the child calls its loop's fork function, and then works; the parent is unaffected.
#include <poll.h>

#include <csignal>

#include "base/fault.h"
#include "core/ownership.h"
#include "spate/error.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

// In a child: if the condition is false, returns from the child with the line's number.
#define CHILD_EXPECT(condition) \
  if (!(condition)) return __LINE__ % 251 + 1

using ForkTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(ForkTest);
using KernelSetForkTest = OnEveryBackend;
SPATE_ON_BACKENDS_WHERE(KernelSetForkTest, uses_kernel_set);

TEST_P(ForkTest, RunInChildRequiresAfterFork) {
  Pipe pipe;
  const int pid = fork_child([&] {
    CHILD_EXPECT(loop_->run(Run::no_wait) == Error::loop_forked);
    CHILD_EXPECT(is_foreign(*loop_));
    Probe<Io> io{*loop_, pipe.out(), Events::write};
    CHILD_EXPECT(io->start_now() == Error::loop_forked);
    CHILD_EXPECT(!io->is_active());
    CHILD_EXPECT(!loop_->after_fork());
    CHILD_EXPECT(!is_foreign(*loop_));
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(!io->start_now());
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(io.calls == 1);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  turn();
}

TEST_P(ForkTest, WatchersWorkInChild) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Timer> timer{*loop_};
  Probe<Periodic> periodic{*loop_};
  Probe<Signal> signal{*loop_};
  Probe<Async> async{*loop_};
  const TempDir dir;
  Probe<Stat> stat{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(1ms));
  EXPECT_TRUE(periodic->start_at(loop_->wall_now() + 1ms));
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_TRUE(async->start());
  EXPECT_FALSE(stat->start(dir.file("file")));
  turn();
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    io.calls = 0;
    async->send();
    ::raise(SIGUSR1);
    dir.append("file");
    CHILD_EXPECT(run_until(*loop_, [&] {
      return io.calls > 0 && timer.calls == 1 && periodic.calls == 1 && signal.calls == 1 &&
             async.calls == 1 && stat.calls == 1;
    }));
    int posted = 0;
    CHILD_EXPECT(loop_->post([&] { ++posted; }));
    CHILD_EXPECT(!loop_->run(Run::once));
    CHILD_EXPECT(posted == 1);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(ForkTest, ParentIsUnaffected) {
  Pipe pipe;
  Pipe other;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  Probe<Io> removed{*loop_, other.in(), Events::read};
  Probe<Signal> signal{*loop_};
  const TempDir dir;
  Probe<Stat> stat{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(removed->start());
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_FALSE(stat->start(dir.file("file")));
  turn();
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    io->stop();
    removed->stop();
    signal->stop();
    stat->stop();
    Probe<Io> mine{*loop_, pipe.out(), Events::write};
    CHILD_EXPECT(mine->start());
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(mine.calls == 1);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  pipe.fill();
  other.fill();
  ::raise(SIGUSR1);
  dir.append("file");
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(removed.calls, 1);
  EXPECT_EQ(signal.calls, 1);
  EXPECT_TRUE(run_until(*loop_, [&] { return stat.calls == 1; }));
}

TEST_P(ForkTest, ChildMayDestroyLoopWithoutAffectingParent) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  const TempDir dir;
  dir.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_FALSE(stat->start(dir.file("file")));
  turn();
  const int pid = fork_child([&] {
    loop_.reset();
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  pipe.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
  dir.append("file");
  EXPECT_TRUE(run_until(*loop_, [&] { return stat.calls == 1; }));
}

TEST_P(ForkTest, ChildMayStopPathsWithoutAffectingParent) {
  const TempDir dir;
  dir.append("file");
  Probe<Stat> file{*loop_};
  Probe<Stat> missing{*loop_};
  EXPECT_FALSE(file->start(dir.file("file"), {.interval = 1h}));
  EXPECT_FALSE(missing->start(dir.file("missing"), {.interval = 1h}));
  turn();
  const int pid = fork_child([&] {
    file->stop();
    CHILD_EXPECT(file->start(dir.file("other")) == Error::loop_forked);
    CHILD_EXPECT(!file->is_active());
    missing->stop();
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  {
    FaultPlan plan;
    const FaultScope scope(plan);
    turn(3);
    EXPECT_EQ(plan.calls(SystemCall::inotify_add_watch), 0u) << "a watch was gone";
  }
  dir.append("file");
  dir.append("missing");
  EXPECT_TRUE(run_until(*loop_, [&] { return file.calls == 1 && missing.calls == 1; }));
}

TEST_P(ForkTest, ChildThatPostsWithoutAfterForkDoesNotWakeParent) {
  Probe<Async> async{*loop_};
  Probe<Signal> signal{*loop_};
  EXPECT_TRUE(async->start());
  EXPECT_FALSE(signal->start(SIGUSR1));
  turn();
  EXPECT_EQ(loop_->prepare_to_wait(), kForever);
  const int pid = fork_child([&] {
    CHILD_EXPECT(loop_->post([] {}));
    async->send();
    ::raise(SIGUSR1);
    loop_->wake();
    CHILD_EXPECT(!loop_->poll_fd());
    CHILD_EXPECT(loop_->prepare_to_wait() == 0ns);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  turn();
  EXPECT_EQ(loop_->metrics().wakeups, 0u);
}

TEST_P(ForkTest, SignalsAreDeliveredToProcessThatRaisedThem) {
  Probe<Signal> signal{*loop_};
  Probe<Signal> other{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_FALSE(other->start(SIGUSR2));
  turn();
  ::raise(SIGUSR1);
  const int pid = fork_child([&] {
    ::raise(SIGUSR2);
    CHILD_EXPECT(!loop_->after_fork());
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(signal.calls == 0);
    CHILD_EXPECT(other.calls == 1);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  turn();
  EXPECT_EQ(signal.calls, 1);
  EXPECT_EQ(other.calls, 0);
}

TEST_P(ForkTest, AsyncSentBeforeForkIsCalledInBothProcesses) {
  Probe<Async> async{*loop_};
  Probe<Async> inactive{*loop_};
  EXPECT_TRUE(async->start());
  async->send();
  inactive->send();
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(async.calls == 1);
    async->send();
    CHILD_EXPECT(inactive->start());
    inactive->send();
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(async.calls == 2);
    CHILD_EXPECT(inactive.calls == 1);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  turn();
  EXPECT_EQ(async.calls, 1);
}

TEST_P(ForkTest, ChildGetsLoopForkedWhenAfterForkFails) {
  for (const SystemCall call :
       {SystemCall::epoll_create, SystemCall::kqueue, SystemCall::eventfd}) {
    if (call == SystemCall::epoll_create && !uses_epoll(backend())) continue;
    if (call == SystemCall::kqueue && backend() != "kqueue") continue;
    const int pid = fork_child([&] {
      FaultPlan plan;
      plan.fail_nth(call, 1, EMFILE);
      const FaultScope scope(plan);
      CHILD_EXPECT(loop_->after_fork().value() == EMFILE);
      CHILD_EXPECT(is_foreign(*loop_));
      CHILD_EXPECT(loop_->run(Run::no_wait) == Error::loop_forked);
      CHILD_EXPECT(!loop_->after_fork());
      CHILD_EXPECT(!is_foreign(*loop_));
      CHILD_EXPECT(!loop_->run(Run::no_wait));
      return 0;
    });
    EXPECT_EQ(wait_for(pid), 0);
  }
}

TEST_P(ForkTest, ChildMayStopWatchersWithoutAffectingParent) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  const int pid = fork_child([&] {
    io->stop();
    CHILD_EXPECT(loop_->run(Run::no_wait));
    io->set(pipe.in(), Events::read);
    CHILD_EXPECT(io->start());
    io->stop_before_close();
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  pipe.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
}

TEST_P(ForkTest, ForkHooksRunOnceAtStartOfNextTurn) {
  Probe<Fork> fork{*loop_};
  Probe<Prepare> prepare{*loop_};
  fork.note(log_, 'f'), prepare.note(log_, 'p');
  EXPECT_TRUE(fork->start());
  EXPECT_TRUE(prepare->start());
  turn();
  EXPECT_EQ(log_, "p");
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    CHILD_EXPECT(fork.calls == 0);
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(log_ == "pfp");
    CHILD_EXPECT(fork.events == Events::fork);
    CHILD_EXPECT(!loop_->run(Run::no_wait));
    CHILD_EXPECT(log_ == "pfpp");
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  turn();
  EXPECT_EQ(log_, "pp");
}

TEST_P(ForkTest, ChildWatchersOfParentAreStoppedInChild) {
  Probe<Child> exit{*loop_};
  Probe<Child> trace{*loop_};
  const int watched = fork_sleeper();
  EXPECT_FALSE(exit->start(watched));
  EXPECT_FALSE(trace->start(watched, Child::Report::exit_stop_continue));
  turn();
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    CHILD_EXPECT(!exit->is_active() && !trace->is_active());
    CHILD_EXPECT(loop_->active_count() == 0);
    CHILD_EXPECT(runs_out(*loop_));
    CHILD_EXPECT(exit.calls == 0 && trace.calls == 0);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  ::kill(watched, SIGKILL);
  run();
  EXPECT_EQ(exit.calls, 1);
  EXPECT_EQ(trace.calls, 1);
}

TEST_P(ForkTest, ChildWatchesItsOwnChildren) {
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    Probe<Child> child{*loop_};
    CHILD_EXPECT(!child->start(fork_child([] { return 5; })));
    CHILD_EXPECT(run_until(*loop_, [&] { return child.calls == 1; }));
    CHILD_EXPECT(child->exit_code() == 5);
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(ForkTest, ChildForkedInsideCallbackCanContinue) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Timer> timer{*loop_};
  int pid = -1;
  io.then = [&] {
    if (pid >= 0) return;
    pid = ::fork();
    if (pid == 0 && loop_->after_fork()) ::_exit(1);
  };
  timer.then = [&] { loop_->stop(); };
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(5ms));
  const bool left = !loop_->run() && loop_->has_work();
  if (pid == 0) ::_exit(left && timer.calls == 1 && io.calls > 1 ? 0 : 2);
  EXPECT_TRUE(left);
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(ForkTest, GrandchildMustCallAfterForkAgain) {
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    const int grandchild = fork_child([&] {
      CHILD_EXPECT(loop_->run(Run::no_wait));
      CHILD_EXPECT(!loop_->after_fork());
      CHILD_EXPECT(!loop_->run(Run::no_wait));
      return 0;
    });
    return wait_for(grandchild);
  });
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(KernelSetForkTest, PollDescriptorChangesAfterFork) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  loop_->prepare_to_wait();
  const int pid = fork_child([&] {
    CHILD_EXPECT(!loop_->after_fork());
    CHILD_EXPECT(loop_->poll_fd());
    loop_->prepare_to_wait();
    pollfd entry{.fd = *loop_->poll_fd(), .events = POLLIN, .revents = 0};
    CHILD_EXPECT(::poll(&entry, 1, 0) == 0);
    pipe.fill();
    CHILD_EXPECT(::poll(&entry, 1, 0) == 1);
    pipe.drain();
    return 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(ForkTest, UnrelatedChildDoesNotAffectLoop) {
  const int pid = fork_child([] { return 0; });
  EXPECT_EQ(wait_for(pid), 0);
  turn();
}

}  // namespace
}  // namespace spate::testing
