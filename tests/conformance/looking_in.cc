// Introspection: metrics, counts and reserve().
#include <csignal>
#include <string>
#include <vector>

#include "spate/active.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

using LookingInTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(LookingInTest);

// Returns each entry as "kind label count", and checks that the counts add up.
std::vector<std::string> active_of(Loop& loop) {
  std::vector<std::string> all;
  std::int64_t total = 0;
  for_each_active(loop, [&](const ActiveInfo& info) {
    all.push_back(std::string(name_of(info.kind)) + ' ' + info.label + ' ' +
                  std::to_string(info.count));
    total += info.count;
  });
  EXPECT_EQ(total, loop.active_count());
  return all;
}

using Listed = std::vector<std::string>;

TEST_P(LookingInTest, ListsEachKindOfWatcher) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  Probe<Timer> timer{*loop_};
  Probe<Periodic> periodic{*loop_};
  Probe<Signal> signal{*loop_};
  Probe<Stat> stat{*loop_};
  Probe<Async> async{*loop_};
  Probe<Prepare> prepare{*loop_};
  Probe<Check> check{*loop_};
  Probe<Idle> idle{*loop_};
  EXPECT_EQ(active_of(*loop_), Listed());
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(1h));
  EXPECT_TRUE(periodic->start_every(1h));
  EXPECT_FALSE(signal->start(SIGUSR2));
  EXPECT_FALSE(stat->start("/"));
  EXPECT_TRUE(async->start());
  EXPECT_TRUE(prepare->start());
  EXPECT_TRUE(check->start());
  EXPECT_TRUE(idle->start());
  EXPECT_EQ(active_of(*loop_),
            (Listed{"io  1", "timer  1", "periodic  1", "signal " + std::to_string(SIGUSR2) + " 1",
                    "stat / 1", "async  1", "prepare  1", "check  1", "idle  1"}));
  timer->stop();
  idle->stop();
  EXPECT_EQ(active_of(*loop_).size(), 7u);
}

TEST_P(LookingInTest, ListsCallsThatLoopOwns) {
  Pipe pipe;
  EXPECT_FALSE(loop_->once(pipe.in(), Events::read, 1h, [](Events) {}));
  EXPECT_FALSE(loop_->after(1h, [] {}));
  EXPECT_TRUE(loop_->defer([] {}));
  EXPECT_TRUE(loop_->post([] {}));
  EXPECT_FALSE(loop_->on_signal(SIGUSR2, [] {}));
  EXPECT_EQ(active_of(*loop_),
            (Listed{"once  2", "after  1", "deferred call  0", "posted task  0"}));
}

TEST_P(LookingInTest, ListsReferencesAsOneEntry) {
  loop_->ref();
  loop_->ref();
  EXPECT_EQ(active_of(*loop_), (Listed{"reference  2"}));
  loop_->unref();
  loop_->unref();
  loop_->unref();
  EXPECT_EQ(active_of(*loop_), (Listed{"reference  -1"}));
  loop_->ref();
}

TEST_P(LookingInTest, ListHasDescriptorDueTimeAndWatcher) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(5s));
  std::vector<ActiveInfo> all;
  for_each_active(*loop_, [&](const ActiveInfo& info) { all.push_back(info); });
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].fd, pipe.in());
  EXPECT_FALSE(all[0].due);
  EXPECT_EQ(all[1].fd, -1);
  EXPECT_EQ(all[1].due, loop_->now() + 5s);
  EXPECT_NE(all[0].id, all[1].id);
}

TEST_P(LookingInTest, VisitMayStopWatchers) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(1h));
  for_each_active(*loop_, [&](const ActiveInfo&) { timer->stop(); });
  EXPECT_EQ(active_of(*loop_), Listed());
}

TEST_P(LookingInTest, CountsTurnsAndWaits) {
  turn();  // The first turn may do additional work.
  const std::uint64_t before = loop_->metrics().kernel_calls.wait;
  turn(3);
  EXPECT_EQ(loop_->iteration(), 4u);
  EXPECT_EQ(loop_->metrics().turns, 4u);
  EXPECT_EQ(loop_->metrics().kernel_calls.wait, before + 3);
}

TEST_P(LookingInTest, CountsCallbacks) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Timer> timer{*loop_};
  Probe<Check> check{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(0ns));
  EXPECT_TRUE(check->start());
  turn();
  EXPECT_EQ(loop_->metrics().events, 3u);
}

TEST_P(LookingInTest, PostedTaskCountsAsOneEvent) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(loop_->post([] {}));
  turn();
  EXPECT_EQ(loop_->metrics().posts, 5u);
  EXPECT_EQ(loop_->metrics().events, 5u);
}

TEST_P(LookingInTest, ActiveWatchersAreCounted) {
  Pipe pipe;
  Probe<Io> a{*loop_, pipe.in(), Events::read};
  Probe<Io> b{*loop_, pipe.in(), Events::read};
  Probe<Io> c{*loop_, pipe.out(), Events::write};
  Probe<Timer> near{*loop_};
  Probe<Timer> far{*loop_};
  EXPECT_EQ(loop_->metrics().active_fds, 0u);
  for (Probe<Io>* io : {&a, &b, &c}) EXPECT_TRUE((*io)->start());
  EXPECT_TRUE(near->start(1ms));
  EXPECT_TRUE(far->start(1h));
  EXPECT_EQ(loop_->active_count(), 5);
  EXPECT_EQ(loop_->metrics().active_fds, 2u);
  EXPECT_EQ(loop_->metrics().active_timers, 2u);
  far->stop();
  EXPECT_EQ(loop_->metrics().active_timers, 1u);
  EXPECT_TRUE(far->start(1h));
  EXPECT_EQ(loop_->metrics().active_timers, 2u);
  for (Probe<Io>* io : {&a, &b, &c}) (*io)->stop();
  near->stop();
  far->stop();
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_EQ(loop_->metrics().active_fds, 0u);
  EXPECT_EQ(loop_->metrics().active_timers, 0u);
}

TEST_P(LookingInTest, PendingWatchersAreCounted) {
  Probe<Timer> a{*loop_};
  Probe<Timer> b{*loop_};
  EXPECT_TRUE(a->feed());
  EXPECT_TRUE(b->feed());
  EXPECT_EQ(loop_->pending_count(), 2u);
  EXPECT_EQ(loop_->metrics().pending, 2u);
  b.then = [&] { EXPECT_EQ(loop_->pending_count(), 0u); };
  turn();
  EXPECT_EQ(loop_->metrics().pending, 0u);
}

TEST_P(LookingInTest, KernelCallsForChangesAreCounted) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  const std::uint64_t before = modifies();
  EXPECT_TRUE(io->start());
  turn();
  io->stop();
  turn();
  EXPECT_EQ(modifies() - before, has_kernel_set() ? 2u : 0u);
}

TEST_P(LookingInTest, MeasuresWaitsOnRequest) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(1ms));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_FALSE(loop_->is_measuring_waits());
  EXPECT_EQ(loop_->metrics().blocked + loop_->metrics().busy, 0ns) << "nobody has asked";
  loop_->measure_waits(true);
  EXPECT_TRUE(loop_->is_measuring_waits());
  wait_until_it_sleeps(*loop_, [&](Nanos delay) {
    EXPECT_TRUE(timer->start(delay));
    EXPECT_TRUE(runs_out(*loop_));
  });
  EXPECT_GT(loop_->metrics().busy, 0ns);
}

TEST(MetricsTest, BlockedTimeIsWaitAndBusyTimeRest) {
  ScriptedLoop scripted;
  Loop& loop = *scripted.loop;
  Probe<Timer> timer{loop};
  timer.then = [&] {
    scripted.clock.advance(2s);
    if (timer.calls == 1) loop.measure_waits(true);
    if (timer.calls == 3) loop.measure_waits(false);
    if (timer.calls == 4) timer->stop();
  };
  EXPECT_TRUE(timer->start(1s, 10s));
  EXPECT_TRUE(runs_out(loop));
  EXPECT_EQ(loop.metrics().blocked, 8s + 8s) << "the second and the third wait";
  EXPECT_EQ(loop.metrics().busy, 2s + 2s) << "the second and the third call";
  EXPECT_FALSE(loop.is_measuring_waits());
}

TEST(MetricsTest, BusyTimeIsTimeBetweenTwoCalls) {
  ScriptedLoop scripted;
  Loop& loop = *scripted.loop;
  Probe<Timer> timer{loop};
  timer.then = [&] {
    scripted.clock.advance(1s);
    loop.measure_waits(true);
    loop.measure_waits(true);
    scripted.clock.advance(2s);
    EXPECT_EQ(loop.metrics().busy, 2s);
    loop.measure_waits(false);
    scripted.clock.advance(4s);
  };
  EXPECT_TRUE(timer->feed());
  EXPECT_FALSE(loop.run(Run::once));
  EXPECT_EQ(loop.metrics().busy, 2s);
}

TEST(MetricsTest, RunningCallbackIsReportedWhileMeasured) {
  ScriptedLoop scripted;
  Loop& loop = *scripted.loop;
  Probe<Timer> timer{loop};
  Probe<Io> io{loop, 0, Events::read};
  EXPECT_FALSE(loop.running_callback());
  const void* outer = nullptr;
  timer.then = [&] {
    if (!loop.is_measuring_callbacks()) {
      EXPECT_FALSE(loop.running_callback());
      return;
    }
    scripted.clock.advance(3s);
    const auto running = loop.running_callback();
    ASSERT_TRUE(running);
    EXPECT_EQ(running->kind, "Timer");
    EXPECT_EQ(running->since, 3s);
    outer = running->watcher;
    EXPECT_TRUE(io->feed(Events::read));
    EXPECT_FALSE(loop.run(Run::no_wait));
    ASSERT_TRUE(loop.running_callback());
    EXPECT_EQ(loop.running_callback()->watcher, outer) << "as before the run inside";
  };
  io.then = [&] {
    ASSERT_TRUE(loop.running_callback());
    EXPECT_EQ(loop.running_callback()->kind, "Io");
    EXPECT_EQ(loop.running_callback()->since, 0s);
    EXPECT_NE(loop.running_callback()->watcher, outer);
  };
  for (const bool on : {false, true}) {
    loop.measure_callbacks(on);
    EXPECT_EQ(loop.is_measuring_callbacks(), on);
    EXPECT_TRUE(timer->feed(Events::timer));
    EXPECT_FALSE(loop.run(Run::no_wait));
  }
  EXPECT_EQ(io.calls, 1);
  EXPECT_FALSE(loop.running_callback());
  EXPECT_EQ(loop.metrics().longest_kind, "Timer");
}

TEST(MetricsTest, PostedTasksAreMeasuredAsOneCallback) {
  ScriptedLoop scripted;
  Loop& loop = *scripted.loop;
  loop.measure_callbacks(true);
  EXPECT_TRUE(loop.post([&] {
    ASSERT_TRUE(loop.running_callback());
    EXPECT_EQ(loop.running_callback()->kind, "post()");
    scripted.clock.advance(1s);
  }));
  EXPECT_FALSE(loop.run(Run::no_wait));
  EXPECT_EQ(loop.metrics().longest_kind, "post()");
}

TEST(MetricsTest, CallbackTimesAreMeasuredOnRequest) {
  ScriptedLoop scripted;
  Loop& loop = *scripted.loop;
  Probe<Timer> timer{loop};
  timer.then = [&] { scripted.clock.advance(timer.calls * 2s - Nanos{timer.calls > 2 ? 3s : 0s}); };
  const auto call = [&] {
    EXPECT_TRUE(timer->feed());
    EXPECT_FALSE(loop.run(Run::once));
  };
  call();
  EXPECT_EQ(loop.metrics().longest_callback, 0ns);
  loop.measure_callbacks(true);
  loop.measure_waits(true);
  call();
  EXPECT_EQ(loop.metrics().longest_callback, 4s);
  EXPECT_EQ(loop.metrics().last_callback, 4s);
  call();
  EXPECT_EQ(loop.metrics().longest_callback, 4s);
  EXPECT_EQ(loop.metrics().last_callback, 3s);
  loop.measure_callbacks(false);
  call();
  EXPECT_EQ(loop.metrics().last_callback, 3s);
  EXPECT_EQ(loop.metrics().busy, 12s);
}

TEST(MetricsTest, StaleEventIsCountedAndDropped) {
  ScriptedLoop scripted;
  Probe<Io> io{*scripted.loop, 0, Events::read};
  EXPECT_TRUE(io->start());
  turn(*scripted.loop);
  const std::uint32_t generation = scripted.backend->registered[0].generation;
  scripted.backend->report({0, generation - 1, Events::read, 0});
  turn(*scripted.loop);
  EXPECT_EQ(io.calls, 0);
  EXPECT_EQ(scripted.loop->metrics().stale_events, 1u);
  scripted.backend->report(0, Events::read);
  turn(*scripted.loop);
  EXPECT_EQ(io.calls, 1);
}

TEST_P(LookingInTest, ReserveAllocatesAndChangesNothingElse) {
  EXPECT_TRUE(loop_->reserve(4096, 1000));
  EXPECT_TRUE(loop_->reserve(16, 1));
  EXPECT_TRUE(loop_->reserve(0, 0));
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Io> not_open{*loop_, 4000, Events::read};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(not_open->start());
  EXPECT_TRUE(timer->start(0ns));
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(timer.calls, 1);
  EXPECT_TRUE(any(not_open.events & Events::error));
  EXPECT_EQ(loop_->active_count(), 1);
}

TEST_P(LookingInTest, WatchersReportTheirLoopAndTarget) {
  Probe<Io> io{*loop_, 7, Events::read | Events::peer_closed};
  EXPECT_EQ(&io->loop(), loop_.get());
  EXPECT_EQ(io->fd(), 7);
  EXPECT_EQ(io->events(), Events::read | Events::peer_closed);
  io->set(3, Events::write);
  EXPECT_EQ(io->fd(), 3);
  EXPECT_EQ(io->events(), Events::write);
}

}  // namespace
}  // namespace spate::testing
