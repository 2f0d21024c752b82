// Child: processes that exit, stop and continue, while others wait for other ones.
#include <sys/wait.h>

#include <csignal>
#include <thread>
#include <vector>

#include "base/fault.h"
#include "system/open_fds.h"
#include "tests/conformance/harness.h"
#include "tests/support/system_error.h"

namespace spate::testing {
namespace {

int fork_exiting(int code) {
  return fork_child([code] { return code; });
}

class ChildTest : public OnEveryBackend {
 protected:
  ~ChildTest() override {
    for (const int pid : left_over_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  // Forks a child that the test need not reap.
  int sleeper() {
    left_over_.push_back(fork_sleeper());
    return left_over_.back();
  }

 private:
  std::vector<int> left_over_;
};
SPATE_ON_EVERY_BACKEND(ChildTest);

TEST_P(ChildTest, ChildIsReportedBeforeTimersOfSameTurn) {
  Probe<Child> child{*loop_};
  Probe<Timer> timer{*loop_};
  child.note(log_, 'c'), timer.note(log_, 't');
  const int pid = fork_sleeper();
  EXPECT_FALSE(child->start(pid));
  turn();
  ::kill(pid, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(timer->start(0ns));
  turn();
  EXPECT_EQ(log_, "ct");
}

TEST_P(ChildTest, ExitCodeIsReported) {
  Probe<Child> child{*loop_};
  const int pid = fork_exiting(42);
  EXPECT_FALSE(child->start(pid));
  EXPECT_EQ(child->pid(), pid);
  EXPECT_EQ(loop_->active_count(), 1);
  child.then = [&] { EXPECT_FALSE(child->is_active()); };
  run();
  EXPECT_EQ(child.calls, 1);
  EXPECT_EQ(child.events, Events::child);
  EXPECT_TRUE(child->exited());
  EXPECT_FALSE(child->signaled());
  EXPECT_EQ(child->exit_code(), 42);
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1) << "it has been reaped";
}

TEST_P(ChildTest, FatalSignalIsReported) {
  Probe<Child> child{*loop_};
  const int pid = fork_sleeper();
  EXPECT_FALSE(child->start(pid));
  turn();
  EXPECT_EQ(child.calls, 0);
  ::kill(pid, SIGTERM);
  run();
  EXPECT_EQ(child.calls, 1);
  EXPECT_TRUE(child->signaled());
  EXPECT_FALSE(child->exited());
  EXPECT_EQ(child->term_signal(), SIGTERM);
  const int status = child->status();  // macOS's macro takes its address.
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_P(ChildTest, ChildKilledDuringStopReportIsReportedAsExited) {
  Probe<Child> child{*loop_};
  const int pid = fork_sleeper();
  EXPECT_FALSE(child->start(pid, Child::Report::exit_stop_continue));
  child.then = [&] {
    if (child.calls == 1) EXPECT_TRUE(child->stopped());
  };
  turn();
  FaultPlan plan;  // waitid() is called twice: to find the child, and to reap it.
  plan.before_nth(SystemCall::waitid, 2, [pid] {
    ::kill(pid, SIGKILL);
    await_end(pid);
  });
  const FaultScope scope(plan);
  ::kill(pid, SIGSTOP);
  run();
  EXPECT_EQ(child.calls, 2);
  EXPECT_EQ(child.events, Events::child);
  EXPECT_TRUE(child->signaled());
  EXPECT_EQ(child->term_signal(), SIGKILL);
}

TEST_P(ChildTest, AlreadyExitedChildIsReportedInNextTurn) {
  for (const Child::Report report : {Child::Report::exit, Child::Report::exit_stop_continue}) {
    Probe<Child> child{*loop_};
    const int pid = fork_exiting(7);
    await_end(pid);
    EXPECT_FALSE(child->start(pid, report));
    EXPECT_EQ(child.calls, 0);
    turn();
    EXPECT_EQ(child.calls, 1);
    EXPECT_EQ(child->exit_code(), 7);
  }
}

TEST_P(ChildTest, SeveralWatchersOfOneProcessAreAllCalled) {
  Probe<Child> a{*loop_};
  Probe<Child> b{*loop_};
  Probe<Child> c{*loop_};
  const int pid = fork_sleeper();
  EXPECT_FALSE(a->start(pid));
  EXPECT_FALSE(b->start(pid, Child::Report::exit_stop_continue));
  EXPECT_FALSE(c->start(pid));
  turn();
  ::kill(pid, SIGKILL);
  run();
  for (Probe<Child>* child : {&a, &b, &c}) {
    EXPECT_EQ(child->calls, 1);
    EXPECT_EQ(child->events, Events::child);
    EXPECT_EQ((*child)->term_signal(), SIGKILL);
  }
}

// The first report removes the next watchers from the list: those after them must still be checked.
TEST_P(ChildTest, SeveralWatchersOfOneProcessDoNotHideOtherChildren) {
  Probe<Child> other{*loop_};
  Probe<Child> a{*loop_};
  Probe<Child> b{*loop_};
  const int first = fork_sleeper();
  const int second = fork_sleeper();
  for (auto [child, pid] : {std::pair{&other, second}, {&a, first}, {&b, first}})
    EXPECT_FALSE((*child)->start(pid, Child::Report::exit_stop_continue));
  turn();
  for (const int pid : {first, second}) {
    ::kill(pid, SIGKILL);
    await_end(pid);
  }
  turn(3);
  for (Probe<Child>* child : {&other, &a, &b}) EXPECT_EQ(child->calls, 1);
}

TEST_P(ChildTest, ManyChildrenEndingTogetherAreAllReported) {
  std::vector<std::unique_ptr<Probe<Child>>> children;
  for (int i = 0; i < 20; ++i) {
    children.push_back(std::make_unique<Probe<Child>>(*loop_));
    const auto report = i % 2 == 0 ? Child::Report::exit : Child::Report::exit_stop_continue;
    EXPECT_FALSE(children.back()->watcher.start(fork_exiting(i), report));
  }
  run();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(children[static_cast<std::size_t>(i)]->calls, 1) << i;
    EXPECT_EQ(children[static_cast<std::size_t>(i)]->watcher.exit_code(), i);
  }
}

TEST_P(ChildTest, ProcessThatIsNotChildIsError) {
  Probe<Child> child{*loop_};
  EXPECT_EQ(child->start(1), system_error(ECHILD));
  EXPECT_EQ(child->start(::getpid()), system_error(ECHILD));
  const int reaped = fork_exiting(0);
  EXPECT_EQ(wait_for(reaped), 0);
  EXPECT_EQ(child->start(reaped), system_error(ECHILD));
  EXPECT_EQ(child->start(reaped, Child::Report::exit_stop_continue), system_error(ECHILD));
  for (const int bad : {0, -1, -5}) EXPECT_EQ(child->start(bad), system_error(EINVAL)) << bad;
  EXPECT_FALSE(child->is_active());
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(ChildTest, StatusOfAnotherChildIsNotReaped) {
  Probe<Child> exit{*loop_};
  Probe<Child> trace{*loop_};
  const int others = fork_exiting(9);
  await_end(others);
  EXPECT_FALSE(exit->start(fork_exiting(1)));
  EXPECT_FALSE(trace->start(fork_exiting(2), Child::Report::exit_stop_continue));
  run();
  EXPECT_EQ(exit.calls, 1);
  EXPECT_EQ(trace.calls, 1);
  EXPECT_EQ(wait_for(others), 9);
}

TEST_P(ChildTest, StatusReapedElsewhereIsReported) {
  for (const Child::Report report : {Child::Report::exit, Child::Report::exit_stop_continue}) {
    Probe<Child> child{*loop_};
    const int pid = fork_sleeper();
    EXPECT_FALSE(child->start(pid, report));
    ::kill(pid, SIGKILL);
    EXPECT_EQ(wait_for(pid), -SIGKILL);
    run();
    EXPECT_EQ(child.calls, 1);
    EXPECT_EQ(child.events, Events::child | Events::error);
    EXPECT_FALSE(child->exited() || child->signaled() || child->stopped() || child->continued());
    EXPECT_FALSE(child->is_active());
  }
}

TEST_P(ChildTest, ReportsStopsAndContinuesOnRequest) {
  Probe<Child> trace{*loop_};
  Probe<Child> plain{*loop_};
  const int pid = fork_sleeper();
  EXPECT_FALSE(trace->start(pid, Child::Report::exit_stop_continue));
  EXPECT_FALSE(plain->start(pid));
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(run_until(*loop_, [&] { return trace.calls == 1; }));
  EXPECT_TRUE(trace->stopped());
  EXPECT_FALSE(trace->exited() || trace->signaled() || trace->continued());
  EXPECT_TRUE(trace->is_active());
  ::kill(pid, SIGCONT);
  EXPECT_TRUE(run_until(*loop_, [&] { return trace.calls == 2; }));
  EXPECT_TRUE(trace->continued());
  EXPECT_FALSE(trace->signaled() || trace->stopped());
  EXPECT_EQ(plain.calls, 0);
  ::kill(pid, SIGKILL);
  run();
  EXPECT_EQ(trace.calls, 3);
  EXPECT_TRUE(trace->signaled());
  EXPECT_EQ(plain.calls, 1);
  EXPECT_EQ(plain->term_signal(), SIGKILL);
}

TEST_P(ChildTest, StoppedWatcherDoesNotReapChild) {
  Probe<Child> child{*loop_};
  const int pid = fork_sleeper();
  EXPECT_FALSE(child->start(pid));
  turn();
  child->stop();
  EXPECT_EQ(loop_->active_count(), 0);
  ::kill(pid, SIGKILL);
  turn(2);
  EXPECT_EQ(wait_for(pid), -SIGKILL);
  EXPECT_EQ(child.calls, 0);
}

TEST_P(ChildTest, StartWhileActiveRestartsWatcher) {
  Probe<Child> child{*loop_};
  EXPECT_FALSE(child->start(sleeper()));
  const int pid = fork_exiting(3);
  EXPECT_FALSE(child->start(pid));
  run();
  EXPECT_EQ(child.calls, 1);
  EXPECT_EQ(child->exit_code(), 3);
}

TEST_P(ChildTest, CallbackMayStartNextChild) {
  Probe<Child> child{*loop_};
  child.then = [&] {
    if (child.calls < 3) {
      EXPECT_FALSE(child->start(fork_exiting(child.calls + 10)));
    }
  };
  EXPECT_FALSE(child->start(fork_exiting(10)));
  EXPECT_TRUE(run_until(*loop_, [&] { return child.calls == 3; }));
  EXPECT_EQ(child->exit_code(), 12);
}

TEST_P(ChildTest, ExitWatchersUsePidfdsInsteadOfSignals) {
  Probe<Child> child{*loop_};
  EXPECT_FALSE(child->start(sleeper()));
  struct sigaction action{};
  ASSERT_EQ(::sigaction(SIGCHLD, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

TEST_P(ChildTest, WatcherLeaksNoDescriptor) {
  const std::vector<int> before = open_fds();
  {
    Probe<Child> ended{*loop_};
    Probe<Child> stopped{*loop_};
    EXPECT_FALSE(ended->start(fork_exiting(0)));
    EXPECT_FALSE(stopped->start(sleeper()));
    EXPECT_TRUE(run_until(*loop_, [&] { return ended.calls == 1; }));
  }
  EXPECT_EQ(open_fds(), before);
}

TEST_P(ChildTest, WorksOnSecondLoopInAnotherThread) {
  Probe<Child> here{*loop_};
  EXPECT_FALSE(here->start(sleeper()));
  turn();
  for (const Child::Report report : {Child::Report::exit, Child::Report::exit_stop_continue}) {
    const int pid = fork_sleeper();
    int calls = 0;
    int status = 0;
    std::thread thread([&] {
      const std::unique_ptr<Loop> other = make_loop(backend());
      Probe<Child> child{*other};
      EXPECT_FALSE(child->start(pid, report));
      ::kill(pid, SIGKILL);
      EXPECT_TRUE(run_until(*other, [&] { return child.calls > 0; }));
      calls = child.calls;
      status = child->status();
    });
    thread.join();
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  turn();
  EXPECT_EQ(here.calls, 0);
}

}  // namespace
}  // namespace spate::testing
