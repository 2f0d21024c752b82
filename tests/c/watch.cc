// spate_watch in C: events of a directory tree, the end, errors of arguments.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate_net.h"
#include "tests/c/c_loop.h"
#include "tests/support/own_tree.h"
#include "tests/support/sanitizers.h"

namespace spate::testing {
namespace {

namespace fs = std::filesystem;

class CWatchTest : public ::testing::Test {
 protected:
  ~CWatchTest() override { spate_watch_destroy(watch_); }

  static spate_watch_options options(int scope) {
    spate_watch_options made{};
    made.size = sizeof(made);
    made.scope = scope;
    return made;
  }
  int start(const std::string& path, const spate_watch_options* how = nullptr) {
    return spate_watch_start(&watch_, loop_.get(), path.c_str(), &kCallbacks, this, how);
  }
  // Starts, and is called for each of two files that exist.
  void start_with_two_files() {
    tree_.write("a", "1");
    tree_.write("b", "1");
    spate_watch_options how = options(SPATE_WATCH_TREE);
    how.existing = 1;
    ASSERT_EQ(start(tree_.root(), &how), 0);
  }
  void destroy() { spate_watch_destroy(std::exchange(watch_, nullptr)); }
  // Starts, and waits until it is ready.
  void watch(const std::string& path, const spate_watch_options* how = nullptr) {
    ASSERT_EQ(start(path, how), 0);
    EXPECT_EQ(spate_watch_data(watch_), this);
    ASSERT_TRUE(run_until([this] { return has("ready /"); }));
  }
  bool has(const std::string& event) const { return std::ranges::find(log_, event) != log_.end(); }
  // Runs the loop until `done` returns true. The limit only ends a test that fails.
  bool run_until(const std::function<bool()>& done) {
    bool is_late = false;
    spate_timer limit;
    spate_timer_init(
        &limit, loop_.get(),
        [](spate_loop*, spate_timer* timer, std::uint32_t) {
          *static_cast<bool*>(timer->watcher.data) = true;
        },
        &is_late);
    EXPECT_EQ(spate_timer_set(&limit, 120'000 * kMillisecond, 0), 0);
    EXPECT_EQ(spate_timer_start(&limit), 0);
    while (!done() && !is_late) EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_ONCE), 0);
    spate_timer_stop(&limit);
    return !is_late;
  }

  static void on_event(spate_watch* watch, const spate_watch_event* event) {
    auto& test = *static_cast<CWatchTest*>(spate_watch_data(watch));
    EXPECT_EQ(event->size, sizeof(*event));
    EXPECT_EQ(event->old_path != nullptr, event->change == SPATE_CHANGE_MOVED);
    EXPECT_EQ(event->error != 0, event->change == SPATE_CHANGE_UNWATCHED);
    std::string text = spate_change_name(event->change);
    if (event->is_found != 0) text += '*';
    text += ' ';
    if (event->old_path != nullptr) (text += event->old_path) += '>';
    text += event->path;
    if (event->is_directory != 0) text += '/';
    if (event->error != 0) text += ' ' + std::to_string(event->error);
    test.log_.push_back(text);
    if (test.during_event_) test.during_event_();
  }
  static void on_end(spate_watch* watch, int error) {
    auto& test = *static_cast<CWatchTest*>(spate_watch_data(watch));
    test.log_.push_back("end " + std::to_string(error));
    EXPECT_EQ(spate_watch_is_active(watch), 0);
    if (test.during_event_) test.during_event_();
  }

  static constexpr spate_watch_callbacks kCallbacks{sizeof(spate_watch_callbacks), on_event,
                                                    on_end};
  OwnTree tree_;
  CLoop loop_;
  spate_watch* watch_ = nullptr;
  std::vector<std::string> log_;
  std::function<void()> during_event_;
};

TEST_F(CWatchTest, TreeIsReportedWithNamesAndKinds) {
  tree_.write("d/old", "1");
  spate_watch_options how = options(SPATE_WATCH_TREE);
  how.existing = 1;
  how.attributes = 1;
  watch(tree_.root(), &how);
  EXPECT_EQ(spate_watch_root(watch_) + std::string("/"), tree_.root());
  EXPECT_TRUE(has("created* d/"));
  EXPECT_TRUE(has("created* d/old"));
  log_.clear();
  tree_.write("d/new", "1");
  fs::rename(tree_.at("d/new"), tree_.at("moved"));
  fs::permissions(tree_.at("d/old"), fs::perms::owner_read);
  fs::remove(tree_.at("d/old"));
  fs::remove(tree_.at("d"));
  EXPECT_TRUE(run_until([this] { return has("removed d/"); }));
  for (const char* event : {"created d/new", "changed d/new", "written d/new", "moved d/new>moved",
                            "attributes d/old", "removed d/old"})
    EXPECT_TRUE(has(event)) << event;
}

TEST_F(CWatchTest, OptionsAreApplied) {
  spate_watch_options how = options(SPATE_WATCH_FILE);
  how.without_changed = 1;
  watch(tree_.at("file"), &how);
  tree_.write("other", "1");
  tree_.write("file", "1");
  EXPECT_TRUE(run_until([this] { return has("written file"); }));
  EXPECT_FALSE(has("changed file"));
  EXPECT_FALSE(has("written other"));
  spate_watch_destroy(watch_);
  log_.clear();
  tree_.write("d/file", "1");
  how = options(SPATE_WATCH_DIRECTORY);
  watch(tree_.root(), &how);
  tree_.write("d/file", "12");
  tree_.write("mark", "1");
  EXPECT_TRUE(run_until([this] { return has("written mark"); }));
  EXPECT_FALSE(has("written d/file"));
  EXPECT_FALSE(has("attributes mark"));
}

TEST_F(CWatchTest, DirectoryBeyondLimitIsReported) {
  watch(tree_.root());
  FaultPlan plan;
  plan.fail_nth(SystemCall::inotify_add_watch, 1, ENOSPC);
  const FaultScope scope(plan);
  fs::create_directory(tree_.at("d"));
  const std::string expected = "unwatched d/ " + std::to_string(-ENOSPC);
  EXPECT_TRUE(run_until([&] { return has(expected); }));
}

TEST_F(CWatchTest, RemovedRootEndsIt) {
  fs::create_directory(tree_.at("d"));
  watch(tree_.at("d"));
  EXPECT_EQ(spate_watch_is_active(watch_), 1);
  fs::remove(tree_.at("d"));
  const std::string expected = "end " + std::to_string(-ENOENT);
  EXPECT_TRUE(run_until([&] { return has(expected); }));
  EXPECT_EQ(log_.back(), expected);
  EXPECT_EQ(spate_watch_root(watch_), tree_.at("d"));
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
}

TEST_F(CWatchTest, CallbacksMayDestroyIt) {
  during_event_ = [this] { destroy(); };
  start_with_two_files();
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(log_.size(), 1u);
  log_.clear();
  during_event_ = nullptr;
  fs::create_directory(tree_.at("d"));
  watch(tree_.at("d"));
  log_.clear();
  during_event_ = [this] {
    if (!log_.back().starts_with("end")) return;
    destroy();
  };
  fs::remove(tree_.at("d"));
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(watch_, nullptr);
}

TEST_F(CWatchTest, DestroyedInNestedRunIsNotCalledAgain) {
  during_event_ = [this] {
    during_event_ = [this] { destroy(); };
    tree_.write("c", "1");
    EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  };
  start_with_two_files();
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(watch_, nullptr);
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(CWatchTest, PausedDoesNotKeepLoopAliveAndMissesNothing) {
  watch(tree_.root());
  spate_watch_pause(watch_);
  tree_.write("a", "1");
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_FALSE(has("written a"));
  spate_watch_resume(watch_);
  EXPECT_TRUE(run_until([this] { return has("written a"); }));
}

TEST_F(CWatchTest, CallbacksMayBeMissing) {
  static constexpr spate_watch_callbacks kNone{sizeof(kNone), nullptr, nullptr};
  fs::create_directory(tree_.at("d"));
  ASSERT_EQ(
      spate_watch_start(&watch_, loop_.get(), tree_.at("d").c_str(), &kNone, nullptr, nullptr), 0);
  EXPECT_TRUE(run_until([this] {
    fs::remove(tree_.at("d"));
    return spate_watch_is_active(watch_) == 0;
  }));
}

TEST_F(CWatchTest, LoopMayBeDestroyedFirst) {
  {
    const CLoop loop;
    ASSERT_EQ(
        spate_watch_start(&watch_, loop.get(), tree_.root().c_str(), &kCallbacks, this, nullptr),
        0);
  }
  EXPECT_EQ(spate_watch_is_active(watch_), 0);
}

TEST_F(CWatchTest, InvalidArgumentsAreRefused) {
  const std::string root = tree_.root();
  const auto start_with = [&](const char* path, const spate_watch_callbacks* callbacks,
                              const spate_watch_options* how) {
    watch_ = reinterpret_cast<spate_watch*>(this);
    const int code = spate_watch_start(&watch_, loop_.get(), path, callbacks, this, how);
    EXPECT_EQ(watch_, nullptr);
    return code;
  };
  EXPECT_EQ(start_with(nullptr, &kCallbacks, nullptr), -EINVAL);
  EXPECT_EQ(start_with("", &kCallbacks, nullptr), -EINVAL);
  EXPECT_EQ(start_with(root.c_str(), nullptr, nullptr), -EINVAL);
  spate_watch_callbacks small = kCallbacks;
  small.size = sizeof(std::size_t);
  EXPECT_EQ(start_with(root.c_str(), &small, nullptr), -EINVAL);
  spate_watch_options how = options(SPATE_WATCH_FILE + 1);
  EXPECT_EQ(start_with(root.c_str(), &kCallbacks, &how), -EINVAL);
  how = options(-1);
  EXPECT_EQ(start_with(root.c_str(), &kCallbacks, &how), -EINVAL);
  how = options(SPATE_WATCH_TREE);
  how.size = 1;
  EXPECT_EQ(start_with(root.c_str(), &kCallbacks, &how), -EINVAL);
  EXPECT_EQ(start_with(tree_.at("missing").c_str(), &kCallbacks, nullptr), -ENOENT);
  tree_.write("file", "1");
  EXPECT_EQ(start_with(tree_.at("file").c_str(), &kCallbacks, nullptr), -ENOTDIR);
  FaultPlan plan;
  plan.fail_nth(SystemCall::inotify_init, 1, EMFILE);
  const FaultScope scope(plan);
  EXPECT_EQ(start_with(root.c_str(), &kCallbacks, nullptr), -EMFILE);
  spate_watch_destroy(nullptr);
}

TEST(CChangeName, IsNullForUnknownChanges) {
  EXPECT_STREQ(spate_change_name(SPATE_CHANGE_CREATED), "created");
  EXPECT_STREQ(spate_change_name(SPATE_CHANGE_UNWATCHED), "unwatched");
  EXPECT_EQ(spate_change_name(SPATE_CHANGE_UNWATCHED + 1), nullptr);
  EXPECT_EQ(spate_change_name(-1), nullptr);
}

#ifndef SPATE_TEST_THREAD_SANITIZED  // It creates no threads in the child of a fork.
TEST_F(CWatchTest, ChildOfForkReportsOverflow) {
  watch(tree_.root());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (spate_loop_after_fork(loop_.get()) != 0) ::_exit(2);
    ::_exit(run_until([this] { return has("overflow /"); }) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace spate::testing
