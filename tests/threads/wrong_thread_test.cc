// A loop that runs belongs to the thread that runs it. In builds that check, anybody else who
// touches it ends the process.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "spate/async.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "spate/timer.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate {
namespace {

// Does `misuse` in a second thread while the loop is inside run().
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
  (void)loop->run();
  other.join();
}

class WrongThreadDeathTest : public ::testing::Test {
 protected:
  WrongThreadDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(WrongThreadDeathTest, StartingATimerTraps) {
  EXPECT_DEATH(misuse_while_it_runs([](Loop& loop) {
                 Timer timer(loop, [] {});
                 timer.start(Nanos{1});
               }),
               "");
}

TEST_F(WrongThreadDeathTest, StartingAnIoTraps) {
  EXPECT_DEATH(misuse_while_it_runs([](Loop& loop) {
                 Io io(loop, 0, Events::read, [] {});
                 io.start();
               }),
               "");
}

TEST_F(WrongThreadDeathTest, StartingAHookTraps) {
  EXPECT_DEATH(misuse_while_it_runs([](Loop& loop) {
                 Check check(loop, [] {});
                 check.start();
               }),
               "");
}

TEST_F(WrongThreadDeathTest, StoppingTheLoopTraps) {
  EXPECT_DEATH(misuse_while_it_runs([](Loop& loop) { loop.stop(); }), "");
}

TEST_F(WrongThreadDeathTest, RunningTheLoopTraps) {
  EXPECT_DEATH(misuse_while_it_runs([](Loop& loop) { (void)loop.run(Run::no_wait); }), "");
}

TEST_F(WrongThreadDeathTest, DestroyingTheLoopInsideItsCallbackTraps) {
  EXPECT_DEATH(
      {
        auto loop = std::move(*Loop::create());
        Timer timer(*loop, [&loop] { loop.reset(); });
        timer.start(Nanos{0});
        (void)loop->run();
      },
      "");
}

TEST_F(WrongThreadDeathTest, ReaimingAnActiveIoTraps) {
  EXPECT_DEATH(
      {
        const auto loop = std::move(*Loop::create());
        Io io(*loop, 0, Events::read, [] {});
        io.start();
        io.set(1, Events::read);
      },
      "");
}

TEST_F(WrongThreadDeathTest, ChangingThePriorityOfAPendingWatcherTraps) {
  EXPECT_DEATH(
      {
        const auto loop = std::move(*Loop::create());
        Timer timer(*loop, [] {});
        timer.feed();
        timer.set_priority(1);
      },
      "");
}

TEST(WrongThread, MayPostAndSendAndWake) {
  misuse_while_it_runs([](Loop& loop) {
    EXPECT_TRUE(loop.post([] {}));
    loop.wake();
  });
}

TEST(WrongThread, MayUseALoopThatNobodyRuns) {
  const auto loop = std::move(*Loop::create());
  int calls = 0;
  Timer timer(*loop, [&calls] { ++calls; });
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      timer.start(Nanos{0});
      EXPECT_EQ(loop->run(), false);
    }).join();
  }
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace spate

#endif
