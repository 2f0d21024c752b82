// A loop that runs belongs to the thread that runs it. In debug builds, a call from another thread
// aborts the process.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <ostream>
#include <thread>

#include "core/ownership.h"
#include "spate/async.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "spate/timer.h"
#include "tests/support/running.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate {
namespace {

using testing::runs_out;

// Calls `misuse` on a second thread while the loop is inside run().
void misuse_while_it_runs(const std::function<void(Loop&)>& misuse) {
  const auto loop = std::move(*Loop::create());
  std::atomic<bool> runs{false};
  Idle idle(*loop, [&runs] { runs.store(true); });
  idle.start();
  std::thread other([&] {
    while (!runs.load()) std::this_thread::yield();
    misuse(*loop);
    loop->post([&loop] { loop->stop(); });
  });
  loop->run();
  other.join();
}

class WrongThreadDeathTest : public ::testing::Test {
 protected:
  WrongThreadDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The calls that no other thread may make.
struct LoopMisuse {
  const char* name;
  void (*does)(Loop& loop);
};
void PrintTo(const LoopMisuse& misuse, std::ostream* out) { *out << misuse.name; }

const LoopMisuse kLoopMisuses[] = {
    {"Run", [](Loop& loop) { loop.run(Run::no_wait); }},
    {"Stop", [](Loop& loop) { loop.stop(); }},
    {"StopAll", [](Loop& loop) { loop.stop_all(); }},
    {"Ref", [](Loop& loop) { loop.ref(); }},
    {"Unref", [](Loop& loop) { loop.unref(); }},
    {"Now", [](Loop& loop) { (void)loop.now(); }},
    {"UpdateNow", [](Loop& loop) { loop.update_now(); }},
    {"WallNow", [](Loop& loop) { (void)loop.wall_now(); }},
    {"Suspend", [](Loop& loop) { loop.suspend(); }},
    {"Resume", [](Loop& loop) { loop.resume(); }},
    {"RunFor", [](Loop& loop) { loop.run_for(Nanos{0}); }},
    {"HasWork", [](Loop& loop) { (void)loop.has_work(); }},
    {"After", [](Loop& loop) { (void)loop.after(Nanos{1}, [] {}); }},
    {"Defer", [](Loop& loop) { (void)loop.defer([] {}); }},
    {"OnSignal", [](Loop& loop) { (void)loop.on_signal(SIGUSR1, [] {}); }},
    {"Once", [](Loop& loop) { (void)loop.once(0, Events::read, Nanos{1}, [](Events) {}); }},
    {"PollFd", [](Loop& loop) { (void)loop.poll_fd(); }},
    {"PrepareToWait", [](Loop& loop) { (void)loop.prepare_to_wait(); }},
    {"AfterFork", [](Loop& loop) { (void)loop.after_fork(); }},
    {"ActiveCount", [](Loop& loop) { (void)loop.active_count(); }},
    {"PendingCount", [](Loop& loop) { (void)loop.pending_count(); }},
    {"Depth", [](Loop& loop) { (void)loop.depth(); }},
    {"Iteration", [](Loop& loop) { (void)loop.iteration(); }},
    {"Metrics", [](Loop& loop) { (void)loop.metrics(); }},
    {"MeasureCallbacks", [](Loop& loop) { loop.measure_callbacks(true); }},
    {"MeasureWaits", [](Loop& loop) { loop.measure_waits(true); }},
    {"IsMeasuringCallbacks", [](Loop& loop) { (void)loop.is_measuring_callbacks(); }},
    {"IsMeasuringWaits", [](Loop& loop) { (void)loop.is_measuring_waits(); }},
    {"Reserve", [](Loop& loop) { (void)loop.reserve(1, 1); }},
    {"StartTimer", [](Loop& loop) { Timer(loop, [] {}).start(Nanos{1}); }},
    {"StartIo", [](Loop& loop) { Io(loop, 0, Events::read, [] {}).start(); }},
    {"StartIoNow", [](Loop& loop) { (void)Io(loop, 0, Events::read, [] {}).start_now(); }},
    {"StartHook", [](Loop& loop) { Check(loop, [] {}).start(); }},
    {"StartAsync", [](Loop& loop) { Async(loop, [] {}).start(); }},
    {"StartPeriodic", [](Loop& loop) { Periodic(loop, [] {}).start_every(Nanos{1}); }},
    {"StartSignal", [](Loop& loop) { (void)Signal(loop, [] {}).start(SIGUSR2); }},
    {"StartChild", [](Loop& loop) { (void)Child(loop, [] {}).start(1); }},
    {"StartStat", [](Loop& loop) { (void)Stat(loop, [] {}).start("/"); }},
    {"RefreshStat", [](Loop& loop) { Stat(loop, [] {}).refresh(); }},
    {"Feed", [](Loop& loop) { Timer(loop, [] {}).feed(); }},
    {"ClearPendingOfANode",
     [](Loop& loop) {
       Node node{};
       loop.clear_pending(node);
     }},
};

class WrongThreadTableDeathTest : public WrongThreadDeathTest,
                                  public ::testing::WithParamInterface<LoopMisuse> {};
INSTANTIATE_TEST_SUITE_P(Each, WrongThreadTableDeathTest, ::testing::ValuesIn(kLoopMisuses),
                         ::testing::PrintToStringParamName());

TEST_P(WrongThreadTableDeathTest, MisuseTraps) {
  EXPECT_DEATH(misuse_while_it_runs(GetParam().does), "another thread is running this loop");
}

TEST_F(WrongThreadDeathTest, DestroyingLoopInsideItsCallbackTraps) {
  EXPECT_DEATH(
      {
        auto loop = std::move(*Loop::create());
        Timer timer(*loop, [&loop] { loop.reset(); });
        timer.start(Nanos{0});
        loop->run();
      },
      "a Loop was destroyed inside its run");
}

TEST_F(WrongThreadDeathTest, SettingActiveIoTraps) {
  EXPECT_DEATH(
      {
        const auto loop = std::move(*Loop::create());
        Io io(*loop, 0, Events::read, [] {});
        io.start();
        io.set(1, Events::read);
      },
      "stop.. the Io before set");
}

TEST_F(WrongThreadDeathTest, ChangingPriorityOfPendingWatcherTraps) {
  EXPECT_DEATH(
      {
        const auto loop = std::move(*Loop::create());
        Timer timer(*loop, [] {});
        timer.feed();
        timer.set_priority(1);
      },
      "clear_pending.. first");
}

TEST(WrongThread, MayPostAndSendAndWake) {
  misuse_while_it_runs([](Loop& loop) {
    EXPECT_TRUE(loop.post([] {}));
    loop.wake();
  });
}

TEST(WrongThread, IsDetectedByMayTouch) {
  misuse_while_it_runs([](Loop& loop) { EXPECT_FALSE(may_touch(loop)); });
  const auto loop = std::move(*Loop::create());
  EXPECT_TRUE(may_touch(*loop));
  Timer timer(*loop, [](Timer& t) { EXPECT_TRUE(may_touch(t.loop())); });
  timer.start(Nanos{0});
  loop->run();
}

TEST(WrongThread, MayUseLoopThatIsNotRunning) {
  const auto loop = std::move(*Loop::create());
  int calls = 0;
  Timer timer(*loop, [&calls] { ++calls; });
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      timer.start(Nanos{0});
      EXPECT_TRUE(runs_out(*loop));
    }).join();
  }
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace spate

#endif
