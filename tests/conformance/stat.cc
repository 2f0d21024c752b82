// Stat: changes of a path.
#include <sys/stat.h>

#include <filesystem>

#include "base/fault.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class StatTest : public OnEveryBackend {
 protected:
  bool called(const Probe<Stat>& stat, int times) {
    return run_until(*loop_, [&] { return stat.calls >= times; });
  }
  // Runs turns in which nothing may be reported.
  void quiet_turns() { turn(3); }

  TempDir dir_;
};
SPATE_ON_EVERY_BACKEND(StatTest);

TEST_P(StatTest, CurrentStateIsAvailableFromStart) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_EQ(stat->path(), dir_.file("file"));
  EXPECT_TRUE(stat->current().exists());
  EXPECT_EQ(stat->current().size, 1);
  EXPECT_EQ(stat->current().mode & 0777, 0600u);
  EXPECT_EQ(stat->previous(), stat->current());
  quiet_turns();
  EXPECT_EQ(stat.calls, 0);
  EXPECT_EQ(loop_->active_count(), 1);
}

TEST_P(StatTest, FileTimesAreClampedToRange) {
  dir_.append("file");
  constexpr time_t kFar = 15'000'000'000;  // In the year 2445.
  const timespec times[2] = {{-kFar, 0}, {kFar, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, dir_.file("file").c_str(), times, 0), 0);
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file"), {.interval = Nanos::max()}));
  EXPECT_EQ(stat->current().modified, WallTime::max());
  EXPECT_LT(stat->current().accessed, WallTime{});
}

TEST_P(StatTest, ReportsCreation) {
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_FALSE(stat->current().exists());
  quiet_turns();
  EXPECT_EQ(stat.calls, 0);
  dir_.append("file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_EQ(stat.events, Events::stat);
  EXPECT_TRUE(stat->current().exists());
  EXPECT_FALSE(stat->previous().exists());
  EXPECT_EQ(stat->previous(), FileStatus{});
}

TEST_P(StatTest, ReportsChangeOfContents) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  dir_.append("file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_EQ(stat->previous().size, 1);
  EXPECT_EQ(stat->current().size, 2);
  dir_.append("file");
  EXPECT_TRUE(called(stat, 2));
  EXPECT_EQ(stat->previous().size, 2);
  EXPECT_EQ(stat->current().size, 3);
}

TEST_P(StatTest, ReportsChangeOfMode) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  ASSERT_EQ(::chmod(dir_.file("file").c_str(), 0400), 0);
  EXPECT_TRUE(called(stat, 1));
  EXPECT_EQ(stat->current().mode & 0777, 0400u);
}

TEST_P(StatTest, ReportsRemovalAndRecreation) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  ASSERT_EQ(::unlink(dir_.file("file").c_str()), 0);
  EXPECT_TRUE(called(stat, 1));
  EXPECT_FALSE(stat->current().exists());
  EXPECT_TRUE(stat->previous().exists());
  dir_.append("file");
  EXPECT_TRUE(run_until(*loop_, [&] { return stat->current().exists(); }));
  EXPECT_EQ(stat.calls, 2);
}

TEST_P(StatTest, ReportsReplacementByRename) {
  dir_.append("file");
  dir_.append("other");
  dir_.append("other");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  const std::uint64_t inode = stat->current().inode;
  ASSERT_EQ(::rename(dir_.file("other").c_str(), dir_.file("file").c_str()), 0);
  EXPECT_TRUE(run_until(*loop_, [&] { return stat->current().size == 2; }));
  EXPECT_NE(stat->current().inode, inode);
  dir_.append("file");
  EXPECT_TRUE(run_until(*loop_, [&] { return stat->current().size == 3; }))
      << "the new file is not watched";
}

TEST_P(StatTest, PathIsFollowedWhenReplacedFileHasAnotherLink) {
  dir_.append("file");
  dir_.append("other");
  ASSERT_EQ(::link(dir_.file("file").c_str(), dir_.file("second_name").c_str()), 0);
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  ASSERT_EQ(::rename(dir_.file("other").c_str(), dir_.file("file").c_str()), 0);
  EXPECT_TRUE(called(stat, 1));
  const int before = stat.calls;
  dir_.append("second_name");
  quiet_turns();
  EXPECT_EQ(stat.calls, before) << "the old file is still watched";
  dir_.append("file");
  EXPECT_TRUE(run_until(
      *loop_, [&] { return stat->current().size == 2; }, 1s))
      << "the new file is not watched";
}

TEST_P(StatTest, ReportsThatFileWasRenamed) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  ASSERT_EQ(::rename(dir_.file("file").c_str(), dir_.file("elsewhere").c_str()), 0);
  EXPECT_TRUE(called(stat, 1));
  EXPECT_FALSE(stat->current().exists());
  const int before = stat.calls;
  dir_.append("elsewhere");
  quiet_turns();
  EXPECT_EQ(stat.calls, before) << "the path names something else";
}

TEST_P(StatTest, WatchesBelowDirectoryThatDoesNotExistYet) {
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("a/b/file")));
  quiet_turns();
  ASSERT_EQ(::mkdir(dir_.file("a").c_str(), 0700), 0);
  quiet_turns();
  EXPECT_EQ(stat.calls, 0);
  ASSERT_EQ(::mkdir(dir_.file("a/b").c_str(), 0700), 0);
  dir_.append("a/b/file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_TRUE(stat->current().exists());
}

TEST_P(StatTest, WatchesBelowLinkToDirectory) {
  std::filesystem::create_directory(dir_.file("real"));
  std::filesystem::create_symlink("real", dir_.file("link"));
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("link/file"), {.interval = 1h}));
  quiet_turns();
  dir_.append("real/file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_TRUE(stat->current().exists());
}

TEST_P(StatTest, PathThroughDanglingLinkIsPolled) {
  std::filesystem::create_symlink("real", dir_.file("link"));
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("link/file"), {.interval = Stat::kMinInterval}));
  quiet_turns();
  std::filesystem::create_directory(dir_.file("real"));
  dir_.append("real/file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_TRUE(stat->current().exists());
  EXPECT_EQ(loop_->metrics().active_timers, 0u) << "inotify serves now";
}

// Between the failing lookup of a directory and the watch on its parent.
TEST_P(StatTest, FileCreatedDuringLookupIsReported) {
  for (const std::uint64_t nth : {2, 3}) {
    std::filesystem::remove_all(dir_.file("a"));
    Probe<Stat> stat{*loop_};
    FaultPlan plan;
    plan.before_nth(SystemCall::inotify_add_watch, nth, [this] {
      std::filesystem::create_directory(dir_.file("a"));
      dir_.append("a/file");
    });
    {
      const FaultScope scope(plan);
      EXPECT_FALSE(stat->start(dir_.file("a/file"), {.interval = 1h}));
    }
    EXPECT_TRUE(stat->current().exists());
    dir_.append("a/file");
    EXPECT_TRUE(called(stat, 1));
    EXPECT_EQ(stat->current().size, 2);
  }
}

TEST_P(StatTest, UnreadableFileIsWatchedThroughItsDirectory) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  FaultPlan plan;
  plan.fail_nth(SystemCall::inotify_add_watch, 1, EACCES);
  {
    const FaultScope scope(plan);
    EXPECT_FALSE(stat->start(dir_.file("file"), {.interval = 1h}));
  }
  EXPECT_EQ(loop_->metrics().active_timers, 0u);
  dir_.append("file");
  EXPECT_TRUE(called(stat, 1));
}

TEST_P(StatTest, PathInUnreadableDirectoryIsPolled) {
  Probe<Stat> stat{*loop_};
  FaultPlan plan;
  plan.fail_nth(SystemCall::inotify_add_watch, 2, EACCES);
  const FaultScope scope(plan);
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_EQ(loop_->metrics().active_timers, 1u);
}

TEST_P(StatTest, WatchesDirectory) {
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("")));
  ASSERT_EQ(::mkdir(dir_.file("sub").c_str(), 0700), 0);
  EXPECT_TRUE(called(stat, 1));
  EXPECT_GT(stat->current().links + static_cast<std::uint64_t>(stat->current().size), 0u);
}

TEST_P(StatTest, SymbolicLinkIsWatchedItself) {
  dir_.append("file");
  ASSERT_EQ(::symlink("file", dir_.file("link").c_str()), 0);
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("link")));
  EXPECT_TRUE(S_ISLNK(stat->current().mode));
  dir_.append("file");
  quiet_turns();
  EXPECT_EQ(stat.calls, 0);
  ASSERT_EQ(::unlink(dir_.file("link").c_str()), 0);
  EXPECT_TRUE(called(stat, 1));
}

TEST_P(StatTest, TwoWatchersOfOneFileAreCalledIndependently) {
  dir_.append("file");
  Probe<Stat> a{*loop_};
  Probe<Stat> b{*loop_};
  EXPECT_FALSE(a->start(dir_.file("file")));
  EXPECT_FALSE(b->start(dir_.file("file")));
  dir_.append("file");
  EXPECT_TRUE(run_until(*loop_, [&] { return a.calls == 1 && b.calls == 1; }));
  a->stop();
  dir_.append("file");
  EXPECT_TRUE(called(b, 2));
  EXPECT_EQ(a.calls, 1);
}

// The kernel has a single watch for both.
TEST_P(StatTest, StopOfOneWatcherKeepsSharedInotifyWatch) {
  dir_.append("file");
  Probe<Stat> first{*loop_};
  Probe<Stat> second{*loop_};
  EXPECT_FALSE(first->start(dir_.file("file")));
  EXPECT_FALSE(second->start(dir_.file("file")));
  first->stop();
  FaultPlan plan;
  const FaultScope scope(plan);
  quiet_turns();
  EXPECT_EQ(plan.calls(SystemCall::inotify_add_watch), 0u) << "the watch was gone";
  dir_.append("file");
  EXPECT_TRUE(called(second, 1));
}

// More events than the kernel queues: after an overflow, any path may have changed.
TEST_P(StatTest, ChangeWithLostInotifyEventIsReported) {
  int room = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> room;
  if (room <= 0 || room > 100'000)
    GTEST_SKIP() << "fs.inotify.max_queued_events is above 100000: lower it with sysctl";
  std::vector<std::unique_ptr<Probe<Stat>>> stats;
  for (const char* name : {"a", "b", "quiet"}) {
    dir_.append(name);
    stats.push_back(std::make_unique<Probe<Stat>>(*loop_));
    EXPECT_FALSE(stats.back()->watcher.start(dir_.file(name), {.interval = 1h}));
  }
  for (int i = 0; i < room + 10; ++i) {
    const char* name = i % 2 == 0 ? "a" : "b";  // Two equal ones in a row would be merged.
    ASSERT_EQ(::chmod(dir_.file(name).c_str(), 0600), 0);
  }
  dir_.append("quiet");
  EXPECT_TRUE(called(*stats.back(), 1));
}

TEST_P(StatTest, ChangeBeforeAfterForkIsReported) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file"), {.interval = 1h}));
  quiet_turns();
  dir_.append("file");
  EXPECT_FALSE(loop_->after_fork());
  EXPECT_TRUE(called(stat, 1));
  quiet_turns();
  EXPECT_EQ(stat.calls, 1);
}

TEST_P(StatTest, RefreshUpdatesWithoutCallback) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  dir_.append("file");
  stat->refresh();
  EXPECT_EQ(stat->current().size, 2);
  quiet_turns();
  EXPECT_EQ(stat.calls, 0);
}

TEST_P(StatTest, NothingIsPolledWhileInotifyWorks) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_EQ(loop_->metrics().active_timers, 0u);
}

TEST_P(StatTest, BadPathsAreErrors) {
  Probe<Stat> stat{*loop_};
  const auto error = [](int number) { return std::error_code(number, std::system_category()); };
  EXPECT_EQ(stat->start(""), error(EINVAL));
  EXPECT_EQ(stat->start(std::string_view("a\0b", 3)), error(EINVAL));
  EXPECT_EQ(stat->start(std::string(5000, 'x')), error(ENAMETOOLONG));
  EXPECT_FALSE(stat->is_active());
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(StatTest, FollowsLinkOnRequest) {
  dir_.append("file");
  std::filesystem::create_symlink("file", dir_.file("link"));
  Probe<Stat> itself{*loop_};
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(itself->start(dir_.file("link"), {.interval = 1h}));
  EXPECT_FALSE(stat->start(dir_.file("link"), {.interval = 1h, .follow_links = true}));
  EXPECT_EQ(itself->current().mode & S_IFMT, static_cast<unsigned>(S_IFLNK));
  EXPECT_EQ(stat->current().mode & S_IFMT, static_cast<unsigned>(S_IFREG));
  dir_.append("file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_EQ(stat->current().size, 2);
  EXPECT_EQ(itself.calls, 0);
}

TEST_P(StatTest, RetargetedLinkIsReportedWhenFollowed) {
  dir_.append("one");
  dir_.append("two");
  dir_.append("two");
  std::filesystem::create_symlink("one", dir_.file("link"));
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("link"), {.interval = 1ms, .follow_links = true}));
  std::filesystem::create_symlink("two", dir_.file("new link"));
  std::filesystem::rename(dir_.file("new link"), dir_.file("link"));
  EXPECT_TRUE(called(stat, 1));
  EXPECT_EQ(stat->current().size, 2);
  dir_.append("two");
  EXPECT_TRUE(called(stat, 2));
  EXPECT_EQ(stat->current().size, 3);
}

TEST_P(StatTest, DanglingLinkIsMissingUntilItsTargetExists) {
  std::filesystem::create_symlink("file", dir_.file("link"));
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("link"), {.interval = 1ms, .follow_links = true}));
  EXPECT_FALSE(stat->current().exists());
  dir_.append("file");
  EXPECT_TRUE(called(stat, 1));
  EXPECT_EQ(stat->current().size, 1);
}

TEST_P(StatTest, RegularFileIsNotPolledWhenFollowingLinks) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file"), {.follow_links = true}));
  EXPECT_EQ(loop_->metrics().active_timers, 0u);
  std::filesystem::rename(dir_.file("file"), dir_.file("other"));
  EXPECT_TRUE(called(stat, 1));
}

TEST_P(StatTest, IntervalHasDefaultAndMinimum) {
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_EQ(stat->interval(), Stat::kDefaultInterval);
  EXPECT_FALSE(stat->start(dir_.file("file"), {.interval = 1ms}));
  EXPECT_EQ(stat->interval(), Stat::kMinInterval);
  EXPECT_FALSE(stat->start(dir_.file("file"), {.interval = 1h}));
  EXPECT_EQ(stat->interval(), 1h);
}

TEST_P(StatTest, StartOnAnotherPathRestartsWatcher) {
  dir_.append("one");
  dir_.append("two");
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("one")));
  EXPECT_FALSE(stat->start(dir_.file("two")));
  EXPECT_EQ(loop_->active_count(), 1);
  dir_.append("one");
  quiet_turns();
  EXPECT_EQ(stat.calls, 0);
  dir_.append("two");
  EXPECT_TRUE(called(stat, 1));
}

TEST_P(StatTest, StoppedWatcherIsSilentAndLeaksNothing) {
  dir_.append("file");
  Probe<Stat> stat{*loop_};
  Probe<Stat> last{*loop_};
  EXPECT_FALSE(stat->start(dir_.file("file")));
  EXPECT_FALSE(last->start(dir_.file("other")));
  stat->stop();
  dir_.append("file");
  turn(2);
  EXPECT_EQ(stat.calls, 0);
  last->stop();
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(runs_out(*loop_));
}

}  // namespace
}  // namespace spate::testing
