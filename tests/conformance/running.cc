// run(), and the ways to end it: modes, stop, references, nesting, errors.
#include <algorithm>

#include "spate/error.h"
#include "tests/conformance/harness.h"
#include "tests/support/missing.h"

namespace spate::testing {
namespace {

using RunTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(RunTest);

TEST_P(RunTest, RunReturnsAtOnceWithoutWork) {
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_TRUE(runs_out(*loop_, Run::once));
  EXPECT_TRUE(runs_out(*loop_, Run::no_wait));
  EXPECT_EQ(loop_->iteration(), 3u);
}

TEST_P(RunTest, HasWorkReportsRemainingWork) {
  Probe<Timer> near{*loop_};
  Probe<Timer> far{*loop_};
  EXPECT_TRUE(far->start(1h));
  EXPECT_FALSE(loop_->run(Run::no_wait));
  EXPECT_TRUE(loop_->has_work());
  near.then = [&] { loop_->stop(); };
  EXPECT_TRUE(near->start(1ms));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  far->stop();
  EXPECT_TRUE(runs_out(*loop_));
}

TEST_P(RunTest, OnceWaitsForEvent) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(3ms));
  while (timer.calls == 0) EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_LE(loop_->iteration(), 3u);
}

TEST_P(RunTest, NoWaitNeverBlocks) {
  Probe<Timer> timer{*loop_};
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(timer->start(1h));
  EXPECT_TRUE(io->start());
  loop_->measure_waits(true);
  turn(3);
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(loop_->metrics().blocked, 0ns);
}

TEST_P(RunTest, RunUntilDoneEndsWhenLastWatcherStops) {
  Probe<Timer> timer{*loop_};
  timer.then = [&] {
    if (timer.calls == 4) timer->stop();
  };
  EXPECT_TRUE(timer->start(0ns, 1ms));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(timer.calls, 4);
}

TEST_P(RunTest, QueuedEventsAreCalledWithoutActiveWatchers) {
  Probe<Timer> timer{*loop_};
  timer.then = [&] {
    if (timer.calls < 1000) EXPECT_TRUE(timer->feed());
  };
  EXPECT_TRUE(timer->feed());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(timer.calls, 1000);
}

TEST_P(RunTest, QueuedEventsAreCalledBeforeStopTakesEffect) {
  Probe<Timer> a{*loop_};
  Probe<Timer> b{*loop_};
  Probe<Timer> low{*loop_};
  Probe<Timer> repeating{*loop_};
  a.note(log_, 'a'), b.note(log_, 'b'), low.note(log_, 'l');
  low->set_priority(-2);
  a.then = [&] { loop_->stop(); };
  EXPECT_TRUE(repeating->start(0ns, 1ms));
  EXPECT_TRUE(low->feed());
  EXPECT_TRUE(a->feed());
  EXPECT_TRUE(b->feed());
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(log_, "abl");
  EXPECT_EQ(loop_->iteration(), 1u);
}

TEST_P(RunTest, StopOutsideRunHasNoEffect) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(1ms));
  loop_->stop();
  loop_->stop_all();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(timer.calls, 1);
}

TEST_P(RunTest, StopInPrepareHookReturnsWithoutWaiting) {
  Probe<Prepare> prepare{*loop_};
  Probe<Timer> far{*loop_};
  prepare.then = [&] { loop_->stop(); };
  EXPECT_TRUE(prepare->start());
  EXPECT_TRUE(far->start(1h));
  loop_->measure_waits(true);
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(loop_->metrics().blocked, 0ns);
}

TEST_P(RunTest, StopEndsOnlyOneRun) {
  Probe<Timer> timer{*loop_};
  timer.then = [&] {
    if (timer.calls % 3 == 0) loop_->stop();
  };
  EXPECT_TRUE(timer->start(0ns, 100us));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(timer.calls, 3);
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(timer.calls, 6);
}

TEST_P(RunTest, RefKeepsLoopAliveWithoutWatcher) {
  loop_->ref();
  EXPECT_EQ(loop_->active_count(), 1);
  EXPECT_FALSE(loop_->run(Run::no_wait));
  EXPECT_TRUE(loop_->has_work());
  loop_->unref();
  EXPECT_TRUE(runs_out(*loop_));
}

TEST_P(RunTest, UnreferencedWatcherDoesNotKeepLoopAlive) {
  Pipe pipe;
  Probe<Io> background{*loop_, pipe.in(), Events::read};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(background->start());
  loop_->unref();
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(timer->start(1ms));
  pipe.fill();
  background.then = [&] { pipe.drain(); };
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(background.calls, 1);
  EXPECT_EQ(timer.calls, 1);
  loop_->ref();
  background->stop();
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(RunTest, EveryKindCountsOnceWhileActive) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  Probe<Timer> timer{*loop_};
  Probe<Periodic> periodic{*loop_};
  Probe<Signal> signal{*loop_};
  Probe<Async> async{*loop_};
  Probe<Stat> stat{*loop_};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(io->start());
    EXPECT_TRUE(timer->start(1h));
    EXPECT_TRUE(periodic->start_every(1h));
    EXPECT_FALSE(signal->start(SIGUSR1));
    EXPECT_TRUE(async->start());
    EXPECT_FALSE(stat->start("/spate/does/not/exist"));
    EXPECT_EQ(loop_->active_count(), 6);
  }
  for (int i = 0; i < 2; ++i) {
    io->stop(), timer->stop(), periodic->stop(), signal->stop(), async->stop(), stat->stop();
    EXPECT_EQ(loop_->active_count(), 0);
  }
}

// ---- nested

TEST_P(RunTest, NestedRunCallsEventsQueuedByOuterRun) {
  Probe<Timer> a{*loop_};
  Probe<Timer> b{*loop_};
  a.note(log_, 'a'), b.note(log_, 'b');
  a.then = [&] {
    EXPECT_EQ(loop_->depth(), 1);
    EXPECT_FALSE(loop_->run(Run::no_wait));
    log_ += '.';
  };
  b.then = [&] { EXPECT_EQ(loop_->depth(), 2); };
  EXPECT_TRUE(a->feed());
  EXPECT_TRUE(b->feed());
  turn();
  EXPECT_EQ(log_, "ab.");
  EXPECT_EQ(loop_->depth(), 0);
}

TEST_P(RunTest, RunMayBeNestedManyLevelsDeep) {
  Probe<Timer> timer{*loop_};
  int deepest = 0;
  timer.then = [&] {
    deepest = std::max(deepest, loop_->depth());
    if (timer.calls == 50) return;
    EXPECT_TRUE(timer->feed());
    EXPECT_FALSE(loop_->run(Run::no_wait));
  };
  EXPECT_TRUE(timer->feed());
  turn();
  EXPECT_EQ(timer.calls, 50);
  EXPECT_EQ(deepest, 50);
}

TEST_P(RunTest, StopEndsInnermostRunOnly) {
  Probe<Timer> outer{*loop_};
  Probe<Timer> inner{*loop_};
  inner.then = [&] {
    loop_->stop();
    log_ += 'i';
  };
  outer.then = [&] {
    if (outer.calls > 1) return loop_->stop();
    EXPECT_TRUE(inner->start(0ns, 1h));
    EXPECT_FALSE(loop_->run());
    EXPECT_TRUE(loop_->has_work());
    log_ += 'o';
    EXPECT_TRUE(outer->start(0ns));
  };
  EXPECT_TRUE(outer->start(0ns));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(log_, "io");
  EXPECT_EQ(outer.calls, 2) << "the outer run ended with the inner one";
}

TEST_P(RunTest, StopInNestedRunDoesNotAffectNextRun) {
  loop_->ref();
  int called = 0;
  Probe<Timer> timer{*loop_};
  timer.then = [&] { loop_->stop(); };
  EXPECT_TRUE(loop_->post([&] {
    for (int i = 1; i <= 3; ++i) {
      timer->start(1ms);
      EXPECT_FALSE(loop_->run());
      called += timer.calls == i;
    }
    loop_->stop();
  }));
  EXPECT_FALSE(loop_->run());
  EXPECT_EQ(called, 3);
}

TEST_P(RunTest, StopAllEndsAllNestedRuns) {
  Probe<Timer> outer{*loop_};
  Probe<Timer> inner{*loop_};
  inner.then = [&] { loop_->stop_all(); };
  outer.then = [&] {
    EXPECT_TRUE(inner->start(0ns, 1h));
    EXPECT_FALSE(loop_->run());
    EXPECT_TRUE(loop_->has_work());
    log_ += 'o';
  };
  EXPECT_TRUE(outer->start(0ns, 1h));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(log_, "o");
  EXPECT_EQ(outer.calls, 1);
  EXPECT_FALSE(loop_->run(Run::no_wait));
  EXPECT_TRUE(loop_->has_work());
}

TEST_P(RunTest, StopStillEndsRunAfterNestedRun) {
  Probe<Timer> timer{*loop_};
  timer.then = [&] {
    if (timer.calls > 1) return loop_->stop();
    loop_->stop();
    EXPECT_FALSE(loop_->run(Run::no_wait));
  };
  EXPECT_TRUE(timer->start(0ns, 1ms));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(timer.calls, 1) << "the inner run took the outer one's stop";
}

TEST_P(RunTest, RunNestedAfterStopAlsoReturns) {
  Probe<Timer> first{*loop_};
  Probe<Timer> second{*loop_};
  first.then = [&] {
    loop_->stop();
    EXPECT_TRUE(second->feed());
    EXPECT_FALSE(loop_->run());
    EXPECT_TRUE(loop_->has_work());
    log_ += 'n';
  };
  second.then = [&] { log_ += '2'; };
  EXPECT_TRUE(first->start(0ns, 1h));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(log_.find('n') != std::string::npos, true);
  EXPECT_EQ(first.calls, 1);
  turn();
  EXPECT_EQ(second.calls, 1);
}

// ---- errors

TEST(RunErrorTest, ReturnsErrorOfWaitAndLosesNoEvent) {
  ScriptedLoop scripted;
  Probe<Timer> timer{*scripted.loop};
  EXPECT_TRUE(timer->start(1ms));
  scripted.backend->wait_error = -ENOMEM;
  EXPECT_EQ(scripted.loop->run().value(), ENOMEM);
  EXPECT_EQ(scripted.loop->depth(), 0);
  scripted.backend->wait_error = 0;
  EXPECT_TRUE(runs_out(*scripted.loop));
  EXPECT_EQ(timer.calls, 1);
}

TEST(CreateTest, FailsForUnknownBackend) {
  for (const std::string_view name : {"kevent", "", "EPOLL", "epoll "}) {
    const Result<std::unique_ptr<Loop>> created = Loop::create({.backend = name});
    ASSERT_FALSE(created) << name;
    EXPECT_EQ(created.error(), Error::unknown_backend);
    EXPECT_FALSE(created.error().message().empty());
    EXPECT_STREQ(created.error().category().name(), "spate");
  }
}

TEST(CreateTest, SelectsFirstListedBackendForAuto) {
  const Result<std::unique_ptr<Loop>> created = Loop::create();
  ASSERT_TRUE(created);
  EXPECT_EQ((*created)->backend_info().name, Loop::backends().front());
  EXPECT_EQ((*created)->backend_info().reason, "");
}

TEST(CreateTest, ReturnsSystemErrorWithoutFreeDescriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  for (const std::string_view name : Loop::backends()) {
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const Result<std::unique_ptr<Loop>> created = Loop::create({.backend = name});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_FALSE(created) << name;
    EXPECT_EQ(created.error(), std::error_code(EMFILE, std::system_category()));
  }
}

TEST(CreateTest, SucceedsForAllBackendsOnThisMachine) {
  for (const std::string_view name : Loop::backends()) {
    const Result<std::unique_ptr<Loop>> created = Loop::create({.backend = name});
    ASSERT_TRUE(created) << name;
    const BackendInfo info = (*created)->backend_info();
    if (info.name != name) GTEST_SKIP() << no_ring(info.reason);
  }
}

TEST_P(RunTest, EveryBackendCanBeSelectedByName) {
  EXPECT_EQ(loop_->backend_info().name, backend());
  EXPECT_EQ(loop_->backend_info().reason, "");
}

}  // namespace
}  // namespace spate::testing
