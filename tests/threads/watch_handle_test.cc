// Watch: its handle, its loop, bursts, and forks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spate/watch.h"
#include "system/open_fds.h"
#include "tests/support/sanitizers.h"
#include "tests/threads/watch_harness.h"

namespace spate::testing {
namespace {

namespace fs = std::filesystem;

class WatchHandleTest : public WatchTest {};

TEST_F(WatchHandleTest, DestroyedWatchMakesNoCall) {
  const auto before = open_fds();
  watch();
  tree_.write("a", "1");
  const int calls = calls_;
  watch_ = Watch();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(calls_, calls);
  EXPECT_EQ(open_fds(), before);
}

TEST_F(WatchHandleTest, WatchStoppedDuringScanMakesNoCall) {
  for (int i = 0; i < 100; ++i) tree_.write("d" + std::to_string(i) + "/file", "");
  const auto before = open_fds();
  for (int turns = 0; turns < 6; ++turns) {
    Result<Watch> started = start(tree_.root(), {.existing = true});
    ASSERT_TRUE(started);
    for (int i = 0; i < turns; ++i) EXPECT_FALSE(loop_->run(Run::no_wait));
    const int calls = calls_;
    started->stop();
    EXPECT_FALSE(started->is_active());
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    EXPECT_EQ(calls_, calls);
  }
  // A cancelled scan closes its descriptors when it ends.
  EXPECT_TRUE(run_until([&] { return open_fds() == before; }));
}

TEST_F(WatchHandleTest, WatchMayBeStoppedInsideItsCallback) {
  watch();
  tree_.write("a", "1");
  during_call_ = [&] { watch_.stop(); };
  const int calls = calls_;
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(calls_, calls + 1);
  EXPECT_FALSE(watch_.is_active());
}

TEST_F(WatchHandleTest, WatchMayBeReplacedInsideItsCallback) {
  watch();
  tree_.write("d/file", "1");
  take();
  during_call_ = [&] {
    during_call_ = nullptr;
    Result<Watch> started = start(tree_.root(), {.existing = true});
    ASSERT_TRUE(started);
    watch_ = *std::move(started);
  };
  EXPECT_TRUE(run_until([&] { return has("ready /"); }));
  EXPECT_TRUE(has("created* d/file"));
}

TEST_F(WatchHandleTest, WatchMayBeMovedInsideItsCallback) {
  watch();
  std::optional<Watch> other;
  during_call_ = [&] {
    if (!other) other = std::move(watch_);
  };
  run_to_mark();
  EXPECT_FALSE(watch_.is_active());
  ASSERT_TRUE(other && other->is_active());
  run_to_mark();
}

TEST_F(WatchHandleTest, WatchMayBeStoppedInsideItsLastCall) {
  fs::create_directory(tree_.at("d"));
  Result<Watch> started =
      Watch::start(*loop_, tree_.at("d"), [&](const Result<std::span<const WatchEvent>>& events) {
        if (events) return;
        end_ = events.error();
        watch_.stop();
      });
  ASSERT_TRUE(started);
  watch_ = *std::move(started);
  fs::remove(tree_.at("d"));
  EXPECT_TRUE(run_until_end());
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(WatchHandleTest, CallbackMayRunLoop) {
  watch();
  take();
  int depth = 0;
  during_call_ = [&] {
    if (++depth > 3) return;
    const std::string name = "nested" + std::to_string(depth) + "/file";
    tree_.write(name, "1");
    EXPECT_TRUE(run_until([&] { return has("created " + name) || has("created* " + name); }));
  };
  tree_.write("a", "1");
  EXPECT_TRUE(run_until([&] { return depth > 3; }));
  during_call_ = nullptr;
  expect_convergence();
}

TEST_F(WatchHandleTest, WatchMayBeDestroyedInsideNestedRun) {
  watch();
  during_call_ = [&] {
    during_call_ = [&] { watch_ = Watch(); };
    tree_.write("b", "1");
    EXPECT_TRUE(run_until([&] { return !watch_.is_active(); }));
  };
  tree_.write("a", "1");
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_FALSE(watch_.is_active());
}

TEST_F(WatchHandleTest, WatchMayOutliveItsLoop) {
  watch();
  tree_.write("a", "1");
  loop_.reset();
  EXPECT_FALSE(watch_.is_active());
  watch_.pause();
  watch_.resume();
  watch_.stop();
}

TEST_F(WatchHandleTest, LoopMayEndDuringScan) {
  for (int i = 0; i < 100; ++i) tree_.write("d" + std::to_string(i) + "/file", "");
  Result<Watch> started = start(tree_.root(), {.existing = true});
  ASSERT_TRUE(started);
  EXPECT_FALSE(loop_->run(Run::no_wait));
  EXPECT_FALSE(loop_->run(Run::no_wait));
  loop_.reset();
  EXPECT_FALSE(started->is_active());
}

TEST_F(WatchHandleTest, PausedWatchReportsLater) {
  watch();
  watch_.pause();
  EXPECT_TRUE(watch_.is_paused());
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  tree_.write("d/file", "1");
  EXPECT_FALSE(loop_->run(Run::no_wait));
  EXPECT_FALSE(has("created d/"));
  watch_.resume();
  expect_convergence();
}

TEST_F(WatchHandleTest, PauseDuringScanKeepsItsResult) {
  for (int i = 0; i < 50; ++i) tree_.write("d" + std::to_string(i) + "/e/file", "");
  Result<Watch> started = start(tree_.root(), {.existing = true});
  ASSERT_TRUE(started);
  for (int i = 0; i < 200 && !has("ready /"); ++i) {
    EXPECT_FALSE(loop_->run(Run::once));
    started->pause();
    const std::size_t count = log_.size();
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    EXPECT_EQ(log_.size(), count);
    started->resume();
  }
  EXPECT_TRUE(run_until([&] { return has("ready /"); }));
  EXPECT_TRUE(has("created* d49/e/file"));
}

TEST_F(WatchHandleTest, PauseKeepsHalfOfMove) {
  tree_.write("a", "1");
  watch();
  take();
  fs::rename(tree_.at("a"), tree_.at("../a"));
  EXPECT_FALSE(loop_->run(Run::once));
  watch_.pause();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  watch_.resume();
  EXPECT_TRUE(run_until([&] { return has("removed a"); }));
}

// ---- bursts

TEST_F(WatchHandleTest, OtherCallbacksRunDuringBurst) {
  watch();
  for (int i = 0; i < 4'000; ++i) std::ofstream(tree_.at(std::to_string(i)));
  std::size_t most = 0;
  while (!has("created 3999")) {
    const std::size_t before = log_.size();
    EXPECT_FALSE(loop_->run(Run::once));
    most = std::max(most, log_.size() - before);
  }
  EXPECT_LE(most, 1'024u);
}

TEST_F(WatchHandleTest, OverflowIsReportedAndTreeIsScannedAgain) {
  long limit = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> limit;
  if (limit < 1 || limit > 100'000)
    GTEST_SKIP() << "the queue of inotify is too long: set fs.inotify.max_queued_events to 16384";
  tree_.write("old/file", "1");
  tree_.write("kept/file", "1");
  watch();
  watch_.pause();
  for (long i = 0; i < limit; ++i) {
    const std::string name = tree_.at("f" + std::to_string(i % 2));
    std::ofstream(name, std::ios::binary) << "1";
    fs::remove(name);
  }
  fs::remove_all(tree_.at("old"));
  tree_.write("new/deep/file", "1");
  tree_.write("old/other", "1");
  take();
  during_call_ = [this] {  // Its records follow that of the overflow.
    tree_.write("late", "");
    fs::remove(tree_.at("late"));
    during_call_ = nullptr;
  };
  watch_.resume();
  EXPECT_TRUE(run_until([&] { return has("overflow /") && has("ready /"); }));
  EXPECT_FALSE(has("created late"));
  expect_convergence();
  take();
  for (const std::string name : {"new/deep/later", "old/later", "kept/later"}) {
    tree_.write(name, "");
    EXPECT_TRUE(run_until([&] { return has("written " + name) || has("created* " + name); }));
  }
  expect_convergence();
}

// ---- forks

#ifndef SPATE_TEST_THREAD_SANITIZED  // It creates no threads in the child of a fork.
TEST_F(WatchHandleTest, ChildOfForkWatchesForItself) {
  tree_.write("d/file", "1");
  watch();
  take();
  const pid_t child = ::fork();
  if (child == 0) {
    EXPECT_FALSE(loop_->after_fork());
    EXPECT_TRUE(run_until([&] { return has("overflow /"); }));
    tree_.write("d/by_child", "1");
    EXPECT_TRUE(
        run_until([&] { return has("written d/by_child") || has("created* d/by_child"); }));
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(run_until([&] { return has("written d/by_child"); }));
  EXPECT_FALSE(has("overflow /"));
}
#endif

TEST_F(WatchHandleTest, ChildOfForkMayDestroyIt) {
  watch();
  take();
  const pid_t child = ::fork();
  if (child == 0) {
    watch_ = Watch();
    const Result<Watch> refused = start(tree_.root(), {});
    ::_exit(!refused && refused.error() == Error::loop_forked ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  run_to_mark();
}

}  // namespace
}  // namespace spate::testing
