// The loop or its watchers may be destroyed first.
#include <algorithm>
#include <vector>

#include "system/open_fds.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class LifetimeTest : public OnEveryBackend {
 protected:
  ~LifetimeTest() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  // Destroys the loop, checks that the watcher is stopped, then destroys that.
  template <class W>
  void expect_stopped_by_the_loops_end(Probe<W>& probe) {
    EXPECT_TRUE(probe->is_active());
    loop_.reset();
    EXPECT_FALSE(probe->is_active());
    EXPECT_FALSE(probe->is_pending());
    probe->stop();
    EXPECT_EQ(probe.calls, 0);
  }

  Pipe pipe_;
  TempDir dir_;
  int child_ = -1;
};
SPATE_ON_EVERY_BACKEND(LifetimeTest);

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsIo) {
  Probe<Io> io{*loop_, pipe_.out(), Events::write};
  EXPECT_TRUE(io->start());
  expect_stopped_by_the_loops_end(io);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsTimer) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(1h, 1h));
  expect_stopped_by_the_loops_end(timer);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeStoppedTimer) {
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  for (int i = 0; i < 100; ++i) {
    timers.push_back(std::make_unique<Probe<Timer>>(*loop_));
    EXPECT_TRUE(timers.back()->watcher.start(i * 1s));
    if (i % 3 != 0) timers.back()->watcher.stop();
  }
  loop_.reset();
  for (const auto& timer : timers) EXPECT_FALSE(timer->watcher.is_active());
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsPeriodic) {
  Probe<Periodic> periodic{*loop_};
  EXPECT_TRUE(periodic->start_every(1h));
  expect_stopped_by_the_loops_end(periodic);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsSignal) {
  Probe<Signal> signal{*loop_};
  EXPECT_FALSE(signal->start(SIGUSR1));
  expect_stopped_by_the_loops_end(signal);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsChild) {
  Probe<Child> child{*loop_};
  child_ = fork_sleeper();
  EXPECT_FALSE(child->start(child_));
  expect_stopped_by_the_loops_end(child);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsTracedChild) {
  Probe<Child> child{*loop_};
  child_ = fork_sleeper();
  EXPECT_FALSE(child->start(child_, Child::Report::exit_stop_continue));
  expect_stopped_by_the_loops_end(child);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsStat) {
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  expect_stopped_by_the_loops_end(stat);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsAsync) {
  Probe<Async> async{*loop_};
  EXPECT_TRUE(async->start());
  expect_stopped_by_the_loops_end(async);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeSentAsync) {
  Probe<Async> async{*loop_};
  EXPECT_TRUE(async->start());
  async->send();
  expect_stopped_by_the_loops_end(async);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeItsHooks) {
  Probe<Idle> idle{*loop_};
  Probe<Prepare> prepare{*loop_};
  Probe<Check> check{*loop_};
  Probe<Fork> fork{*loop_};
  EXPECT_TRUE(idle->start());
  EXPECT_TRUE(prepare->start());
  EXPECT_TRUE(check->start());
  EXPECT_TRUE(fork->start());
  loop_.reset();
  EXPECT_FALSE(idle->is_active() || prepare->is_active());
  EXPECT_FALSE(check->is_active() || fork->is_active());
  EXPECT_EQ(idle.calls + prepare.calls + check.calls + fork.calls, 0);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforePendingWatchers) {
  Probe<Timer> fed{*loop_};
  Probe<Io> refused{*loop_, INT32_MAX, Events::read};
  EXPECT_TRUE(fed->feed());
  EXPECT_TRUE(refused->start());
  loop_.reset();
  EXPECT_FALSE(fed->is_pending());
  EXPECT_FALSE(refused->is_pending());
  fed->stop();
  EXPECT_EQ(fed.calls + refused.calls, 0);
}

TEST_P(LifetimeTest, LoopMayBeDestroyedBeforeWatchersOfOneDescriptor) {
  Probe<Io> a{*loop_, pipe_.out(), Events::write};
  Probe<Io> b{*loop_, pipe_.out(), Events::write};
  Probe<Io> c{*loop_, pipe_.out(), Events::read};
  EXPECT_TRUE(a->start());
  EXPECT_TRUE(b->start());
  turn();
  EXPECT_TRUE(c->start());
  loop_.reset();
  EXPECT_FALSE(a->is_active() || b->is_active() || c->is_active());
}

TEST_P(LifetimeTest, WatchersMayBeDestroyedBeforeLoop) {
  {
    Probe<Io> io{*loop_, pipe_.out(), Events::write};
    Probe<Timer> timer{*loop_};
    Probe<Periodic> periodic{*loop_};
    Probe<Signal> signal{*loop_};
    Probe<Child> child{*loop_};
    Probe<Stat> stat{*loop_};
    Probe<Async> async{*loop_};
    Probe<Check> check{*loop_};
    child_ = fork_sleeper();
    EXPECT_TRUE(io->start());
    EXPECT_TRUE(timer->start(1h));
    EXPECT_TRUE(periodic->start_every(1h));
    EXPECT_FALSE(signal->start(SIGUSR1));
    EXPECT_FALSE(child->start(child_));
    EXPECT_FALSE(stat->start(dir_.file("file")));
    EXPECT_TRUE(async->start());
    EXPECT_TRUE(check->start());
    async->send();
    turn();
    async->send();
    ::raise(SIGUSR1);
    dir_.append("file");
  }
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_EQ(loop_->pending_count(), 0u);
  EXPECT_TRUE(runs_out(*loop_));
}

TEST_P(LifetimeTest, LoopLeaksNoDescriptor) {
  loop_.reset();
  const std::vector<int> before = open_fds();
  loop_ = make_loop(backend());
  {
    Probe<Periodic> periodic{*loop_};
    Probe<Stat> stat{*loop_};
    EXPECT_TRUE(periodic->start_every(1h));
    EXPECT_FALSE(stat->start(dir_.file("file")));
    turn();
    loop_.reset();
  }
  EXPECT_EQ(open_fds(), before);
}

TEST_P(LifetimeTest, LoopDescriptorsAreNotInherited) {
  loop_.reset();
  const std::vector<int> before = open_fds();
  loop_ = make_loop(backend());
  Probe<Periodic> periodic{*loop_};
  Probe<Stat> stat{*loop_};
  Probe<Child> child{*loop_};
  child_ = fork_sleeper();
  EXPECT_TRUE(periodic->start_every(1h));
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_FALSE(child->start(child_));
  turn();
  for (const int fd : open_fds()) {
    if (std::ranges::binary_search(before, fd)) continue;
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
  }
}

}  // namespace
}  // namespace spate::testing
