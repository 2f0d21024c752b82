// A process may exit while other threads are in their loops: everything that they use must outlive
// them. (Regression: memcached on the drop-in crashed in one of thirty exits, reading a destroyed
// clock.)
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "spate/loop.h"
#include "spate/timer.h"

namespace spate {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void exit_beside_busy_loops() {
  static std::atomic<int> busy{0};
  for (int i = 0; i < 2; ++i) {
    std::thread([] {
      const std::unique_ptr<Loop> loop = *Loop::create();
      Timer timer(*loop, [] { ++busy; });
      timer.start(1us, 1us);
      loop->run();
    }).detach();
  }
  while (busy < 10) std::this_thread::yield();
  std::exit(0);
}

// Destroyed after main()'s thread_locals, and before the loops.
struct PostsAtExit {
  ~PostsAtExit() {
    if (loop == nullptr) return;
    loop->post([] {});
    loop->run(Run::no_wait);
    ::_exit(loop->metrics().posts == 2 ? 7 : 1);
  }
  Loop* loop = nullptr;
};

[[noreturn]] void post_at_exit() {
  static const std::unique_ptr<Loop> a = *Loop::create();
  static const std::unique_ptr<Loop> b = *Loop::create();
  static PostsAtExit at_exit;
  at_exit.loop = a.get();
  a->post([] {});
  b->post([] {});
  std::exit(0);
}

TEST(ExitDeathTest, DestructorOfStaticMayPost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(post_at_exit(), ::testing::ExitedWithCode(7), "");
}

TEST(ExitDeathTest, ProcessEndsWhileThreadsRunTheirLoops) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 10; ++i)
    EXPECT_EXIT(exit_beside_busy_loops(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spate
