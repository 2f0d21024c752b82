// Signal: several watchers, several loops, and the disposition before and after.
#include <sys/time.h>

#include <csignal>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

void do_nothing(int) {}

struct sigaction disposition(int signum) {
  struct sigaction action{};
  EXPECT_EQ(::sigaction(signum, nullptr, &action), 0);
  return action;
}

using SignalTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(SignalTest);

TEST_P(SignalTest, IsReported) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_EQ(signal->signum(), SIGUSR1);
  turn();
  EXPECT_EQ(signal.calls, 0);
  ::raise(SIGUSR1);
  EXPECT_EQ(signal.calls, 0) << "called inside the handler";
  turn();
  EXPECT_EQ(signal.calls, 1);
  EXPECT_EQ(signal.events, Events::signal);
  turn(2);
  EXPECT_EQ(signal.calls, 1);
}

TEST_P(SignalTest, WakesSleepingLoop) {
  Probe<Signal> signal{*loop_};
  signal.then = [&] { signal->stop(); };
  EXPECT_FALSE(signal->start(SIGUSR1));
  const int parent = ::getpid();
  const int pid = fork_child([&] {
    await_sleep(parent);
    return ::kill(parent, SIGUSR1);
  });
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(signal.calls, 1);
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(SignalTest, SignalRaisedInCallbackIsReportedInNextTurn) {
  Probe<Signal> signal{*loop_};
  Probe<Timer> timer{*loop_};
  signal.then = [&] { signal->stop(); };
  timer.then = [] { ::raise(SIGUSR1); };
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_TRUE(timer->start(0ns));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(signal.calls, 1);
}

TEST_P(SignalTest, SimultaneousSignalsAreMerged) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  for (int i = 0; i < 5; ++i) ::raise(SIGUSR1);
  turn(2);
  EXPECT_EQ(signal.calls, 1);
}

TEST_P(SignalTest, WatchersOfOneSignalAreCalledInStartOrder) {
  Probe<Signal> a{*loop_};
  Probe<Signal> b{*loop_};
  Probe<Signal> c{*loop_};
  a.note(log_, 'a'), b.note(log_, 'b'), c.note(log_, 'c');
  for (Probe<Signal>* signal : {&c, &a, &b}) EXPECT_FALSE((*signal)->start(SIGUSR1));
  ::raise(SIGUSR1);
  turn();
  EXPECT_EQ(log_, "cab");
  a->stop();
  ::raise(SIGUSR1);
  turn();
  EXPECT_EQ(log_, "cabcb");
}

TEST_P(SignalTest, DifferentSignalsAreDistinguished) {
  Probe<Signal> one{*loop_};
  Probe<Signal> two{*loop_};
  EXPECT_FALSE(one->start(SIGUSR1));
  EXPECT_FALSE(two->start(SIGUSR2));
  ::raise(SIGUSR2);
  turn();
  EXPECT_EQ(one.calls, 0);
  EXPECT_EQ(two.calls, 1);
}

TEST_P(SignalTest, SeveralLoopsShareSignal) {
  const std::unique_ptr<Loop> other = make_loop(backend());
  Probe<Signal> here{*loop_};
  Probe<Signal> there{*other};
  EXPECT_FALSE(here->start(SIGUSR1));
  EXPECT_FALSE(there->start(SIGUSR1));
  ::raise(SIGUSR1);
  turn();
  testing::turn(*other);
  EXPECT_EQ(here.calls, 1);
  EXPECT_EQ(there.calls, 1);
  here->stop();
  ::raise(SIGUSR1);
  turn();
  testing::turn(*other);
  EXPECT_EQ(here.calls, 1);
  EXPECT_EQ(there.calls, 2);
}

TEST_P(SignalTest, AtMostSixteenLoopsShareSignal) {
  std::vector<std::unique_ptr<Loop>> loops;
  std::vector<std::unique_ptr<Probe<Signal>>> signals;
  for (int i = 0; i < 17; ++i) {
    loops.push_back(make_loop(backend()));
    signals.push_back(std::make_unique<Probe<Signal>>(*loops.back()));
    const std::error_code error = signals.back()->watcher.start(SIGUSR1);
    EXPECT_EQ(error.value(), i < 16 ? 0 : ENOSPC) << i;
  }
  EXPECT_FALSE(signals.back()->watcher.is_active());
  signals.front()->watcher.stop();
  EXPECT_FALSE(signals.back()->watcher.start(SIGUSR1));
  ::raise(SIGUSR1);
  testing::turn(*loops.back());
  EXPECT_EQ(signals.back()->calls, 1);
  signals.clear();
}

TEST_P(SignalTest, LastStopRestoresPreviousDisposition) {
  struct sigaction mine{};
  mine.sa_handler = &do_nothing;
  mine.sa_flags = SA_NODEFER;
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR1, &mine, &before), 0);
  {
    Probe<Signal> a{*loop_};
    Probe<Signal> b{*loop_};
    EXPECT_FALSE(a->start(SIGUSR1));
    EXPECT_NE(disposition(SIGUSR1).sa_handler, &do_nothing);
    EXPECT_TRUE(disposition(SIGUSR1).sa_flags & SA_RESTART);
    EXPECT_FALSE(b->start(SIGUSR1));
    a->stop();
    EXPECT_NE(disposition(SIGUSR1).sa_handler, &do_nothing);
  }
  EXPECT_EQ(disposition(SIGUSR1).sa_handler, &do_nothing);
  EXPECT_TRUE(disposition(SIGUSR1).sa_flags & SA_NODEFER);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(SignalTest, IgnoredDispositionIsRestored) {
  ASSERT_NE(::signal(SIGUSR1, SIG_IGN), SIG_ERR);
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  ::raise(SIGUSR1);
  turn();
  EXPECT_EQ(signal.calls, 1);
  signal->stop();
  EXPECT_EQ(::signal(SIGUSR1, SIG_DFL), SIG_IGN);
}

TEST_P(SignalTest, DispositionChangedElsewhereIsNotRestored) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  ASSERT_NE(::signal(SIGUSR1, &do_nothing), SIG_ERR);
  signal->stop();
  EXPECT_EQ(::signal(SIGUSR1, SIG_DFL), &do_nothing);
}

TEST_P(SignalTest, DestroyedLoopRestoresDisposition) {
  auto other = make_loop(backend());
  Probe<Signal> signal{*other};
  EXPECT_FALSE(signal->start(SIGUSR1));
  other.reset();
  EXPECT_FALSE(signal->is_active());
  EXPECT_EQ(disposition(SIGUSR1).sa_handler, SIG_DFL);
}

TEST_P(SignalTest, BadNumbersAreErrors) {
  Probe<Signal> signal{*loop_};
  for (const int number : {0, -1, 65, 1000, SIGKILL, SIGSTOP, 32}) {
    EXPECT_EQ(signal->start(number), std::error_code(EINVAL, std::system_category())) << number;
    EXPECT_FALSE(signal->is_active());
  }
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(SignalTest, HighestNumberWorks) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(64));
  ::raise(64);
  turn();
  EXPECT_EQ(signal.calls, 1);
}

TEST_P(SignalTest, RestartChangesSignal) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_FALSE(signal->start(SIGUSR2));
  EXPECT_EQ(loop_->active_count(), 1);
  EXPECT_EQ(disposition(SIGUSR1).sa_handler, SIG_DFL);
  ::raise(SIGUSR2);
  turn();
  EXPECT_EQ(signal.calls, 1);
}

TEST_P(SignalTest, StoppedWatcherIsNotCalledForEarlierSignal) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  ::raise(SIGUSR1);
  signal->stop();
  turn();
  EXPECT_EQ(signal.calls, 0);
}

TEST_P(SignalTest, InterruptedWaitIsNeitherErrorNorEarly) {
  struct sigaction rude{};
  rude.sa_handler = &do_nothing;  // Without SA_RESTART.
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGALRM, &rude, &before), 0);
  const itimerval often{.it_interval = {0, 500}, .it_value = {0, 500}};
  const itimerval never{};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(20ms));
  const Nanos start = loop_->now();
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  EXPECT_TRUE(runs_out(*loop_));
  ::setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_EQ(timer.calls, 1);
  EXPECT_GE(loop_->now() - start, 20ms);
  ::sigaction(SIGALRM, &before, nullptr);
}

TEST_P(SignalTest, InterruptedUserSystemCallIsRestarted) {
  Pipe pipe;
  ASSERT_EQ(::fcntl(pipe.in(), F_SETFL, 0), 0);
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  const int parent = ::getpid();
  const int pid = fork_child([&] {
    await_sleep(parent);
    ::kill(parent, SIGUSR1);
    await_sleep(parent);
    return static_cast<int>(::write(pipe.out(), "x", 1));
  });
  char byte = 0;
  EXPECT_EQ(::read(pipe.in(), &byte, 1), 1);
  turn();
  EXPECT_EQ(signal.calls, 1);
  EXPECT_EQ(wait_for(pid), 1);
}

// ---- on_signal()

TEST_P(SignalTest, OnSignalCallsEachTimeAndDoesNotKeepLoopAlive) {
  int calls = 0;
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [&] { ++calls; }));
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(runs_out(*loop_));
  for (int i = 1; i <= 3; ++i) {
    ::raise(SIGUSR1);
    turn();
    EXPECT_EQ(calls, i);
  }
}

TEST_P(SignalTest, OnSignalMayStopSleepingLoop) {
  loop_->ref();
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [&] { loop_->stop(); }));
  const int parent = ::getpid();
  const int pid = fork_child([&] {
    await_sleep(parent);
    return ::kill(parent, SIGUSR1);
  });
  EXPECT_FALSE(loop_->run());
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(SignalTest, OnSignalMayBeCalledInItsCallback) {
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [&] {
    log_ += loop_->depth() == 1 ? "(" : "i";
    if (loop_->depth() > 1) return;
    ::raise(SIGUSR1);
    turn();
    log_ += ")";
  }));
  ::raise(SIGUSR1);
  turn();
  EXPECT_EQ(log_, "(i)");
}

TEST_P(SignalTest, OnSignalSharesSignalWithOtherWatchers) {
  Probe<Signal> signal{*loop_};
  signal.note(log_, 's');
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [&] { log_ += 'a'; }));
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [&] { log_ += 'b'; }));
  ::raise(SIGUSR1);
  turn();
  EXPECT_EQ(log_, "asb");
}

TEST_P(SignalTest, OnSignalRefusesUncatchableSignals) {
  for (const int signum : {-1, 0, 65, SIGKILL, SIGSTOP}) {
    EXPECT_EQ(loop_->on_signal(signum, [] { FAIL(); }).value(), EINVAL) << signum;
  }
}

TEST_P(SignalTest, DestroyedLoopRestoresDispositionOfOnSignal) {
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [] { FAIL(); }));
  EXPECT_NE(disposition(SIGUSR1).sa_handler, SIG_DFL);
  loop_.reset();
  EXPECT_EQ(disposition(SIGUSR1).sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace spate::testing
