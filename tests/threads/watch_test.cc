// Watch: the events of each kind of change.
#include "spate/watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "spate/active.h"
#include "system/open_fds.h"
#include "tests/support/system_error.h"
#include "tests/threads/watch_harness.h"

namespace spate::testing {
namespace {

using Log = std::vector<std::string>;
namespace fs = std::filesystem;

TEST_F(WatchTest, LifeOfFileIsReportedInOrder) {
  watch({.scope = WatchScope::directory});
  EXPECT_EQ(take(), Log{"ready /"});
  const int fd = ::open(tree_.at("a").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_EQ(::write(fd, "text", 4), 4);
  ::close(fd);
  fs::remove(tree_.at("a"));
  run_to_mark();
  EXPECT_EQ(take(), (Log{"created a", "changed a", "written a", "removed a"}));
}

TEST_F(WatchTest, MoveInsideIsOneEvent) {
  tree_.write("a", "1");
  tree_.write("d/b", "2");
  watch();
  take();
  fs::rename(tree_.at("a"), tree_.at("d/b"));
  fs::rename(tree_.at("d"), tree_.at("e"));
  run_to_mark("e/");
  EXPECT_EQ(take(), (Log{"moved a>d/b", "moved d>e/"}));
  EXPECT_EQ(model_.entries().at("e/b"), "1");
}

TEST_F(WatchTest, MoveAcrossBorderIsCreationOrRemoval) {
  tree_.write("a", "1");
  tree_.write("../b", "2");
  watch();
  take();
  fs::rename(tree_.at("a"), tree_.at("../a"));
  fs::rename(tree_.at("../b"), tree_.at("b"));
  run_to_mark();
  EXPECT_EQ(take(), (Log{"removed a", "created b", "written b"}));
}

TEST_F(WatchTest, RemovalByMoveIsReportedWhenNothingFollows) {
  tree_.write("a", "1");
  watch();
  take();
  fs::rename(tree_.at("a"), tree_.at("../a"));
  EXPECT_TRUE(run_until([&] { return has("removed a"); }));
}

TEST_F(WatchTest, NewDirectoriesAreWatched) {
  watch();
  tree_.write("a/b/c/file", "text");
  expect_convergence();
  take();
  tree_.write("a/b/c/later", "text");
  fs::remove(tree_.at("a/b/c/file"));
  run_to_mark("a/b/c/");
  EXPECT_EQ(take(), (Log{"created a/b/c/later", "changed a/b/c/later", "written a/b/c/later",
                         "removed a/b/c/file"}));
}

TEST_F(WatchTest, FoundEntriesAreMarked) {
  tree_.write("../d/file", "text");
  tree_.write("../d/e/file", "text");
  watch();
  take();
  fs::rename(tree_.at("../d"), tree_.at("d"));
  EXPECT_TRUE(run_until([&] { return has("created* d/e/file"); }));
  EXPECT_TRUE(has("created d/") && has("created* d/file") && has("created* d/e/"));
}

TEST_F(WatchTest, OneDirectoryIsNotTree) {
  tree_.write("d/file", "text");
  watch({.scope = WatchScope::directory});
  take();
  tree_.write("d/other", "text");
  fs::create_directory(tree_.at("e"));
  tree_.write("e/file", "text");
  run_to_mark();
  EXPECT_EQ(take(), Log{"created e/"});
}

TEST_F(WatchTest, ExistingEntriesAreReportedOnRequest) {
  tree_.write("d/file", "text");
  watch({.existing = true});
  EXPECT_EQ(take(), (Log{"created* d/", "created* d/file", "ready /"}));
  watch({.scope = WatchScope::directory, .existing = true});
  EXPECT_EQ(take(), (Log{"created* d/", "ready /"}));
  watch(tree_.at("d/file"), {.scope = WatchScope::file, .existing = true});
  EXPECT_EQ(take(), (Log{"created* file", "ready /"}));
}

TEST_F(WatchTest, AttributesAndChangesAreOptional) {
  tree_.write("a", "1");
  watch({.changed = false, .attributes = true});
  take();
  ASSERT_EQ(::chmod(tree_.at("a").c_str(), 0600), 0);
  const int fd = ::open(tree_.at("a").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::write(fd, "2", 1), 1);
  ::close(fd);
  ASSERT_EQ(::chmod(tree_.root().c_str(), 0700), 0);
  EXPECT_TRUE(run_until([&] { return has("attributes /"); }));
  EXPECT_EQ(take(), (Log{"attributes a", "written a", "attributes /"}));
}

// ---- one file

TEST_F(WatchTest, FileIsFollowedThroughReplacements) {
  watch(tree_.at("conf"), {.scope = WatchScope::file});
  EXPECT_EQ(std::string(watch_.root()) + "/", tree_.root());
  take();
  const auto written = [&](Log expected) {
    EXPECT_TRUE(run_until([&] { return log_.size() >= expected.size(); }));
    EXPECT_EQ(take(), expected);
  };
  tree_.write("other", "text");
  tree_.write("conf", "1");
  written({"created conf", "changed conf", "written conf"});
  tree_.write("conf.tmp", "2");
  fs::rename(tree_.at("conf.tmp"), tree_.at("conf"));
  written({"created conf", "written conf"});
  fs::rename(tree_.at("conf"), tree_.at("conf~"));
  written({"removed conf"});
  fs::rename(tree_.at("conf~"), tree_.at("conf"));
  written({"created conf", "written conf"});
  fs::remove(tree_.at("conf"));
  written({"removed conf"});
}

TEST_F(WatchTest, FileScopeEndsWithItsDirectory) {
  fs::create_directory(tree_.at("d"));
  watch(tree_.at("d/conf"), {.scope = WatchScope::file});
  fs::remove(tree_.at("d"));
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(*end_, system_error(ENOENT));
}

// ---- the root

TEST_F(WatchTest, RemovedRootEndsWatch) {
  tree_.write("d/file", "text");
  watch(tree_.at("d"), {});
  fs::remove_all(tree_.at("d"));
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(*end_, system_error(ENOENT));
  EXPECT_TRUE(has("removed file"));
  EXPECT_FALSE(watch_.is_active());
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(WatchTest, MovedRootEndsWatch) {
  fs::create_directory(tree_.at("d"));
  watch(tree_.at("d"), {});
  fs::rename(tree_.at("d"), tree_.at("e"));
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(*end_, system_error(ENOENT));
}

TEST_F(WatchTest, StartReportsErrors) {
  tree_.write("file", "text");
  const auto before = open_fds();
  const auto error_of = [&](const std::string& path, WatchScope scope) {
    const Result<Watch> started = start(path, {.scope = scope});
    return started ? std::error_code() : started.error();
  };
  EXPECT_EQ(error_of(tree_.at("none"), WatchScope::tree), system_error(ENOENT));
  EXPECT_EQ(error_of(tree_.at("none/file"), WatchScope::file), system_error(ENOENT));
  EXPECT_EQ(error_of(tree_.at("file"), WatchScope::tree), system_error(ENOTDIR));
  EXPECT_EQ(error_of(tree_.at("file"), WatchScope::directory), system_error(ENOTDIR));
  EXPECT_EQ(error_of("", WatchScope::tree), system_error(EINVAL));
  EXPECT_EQ(error_of(std::string("/tmp\0x", 6), WatchScope::tree), system_error(EINVAL));
  for (const char* name : {"", "d/", "..", "/"})
    EXPECT_EQ(error_of(name, WatchScope::file), system_error(EINVAL)) << name;
  EXPECT_EQ(error_of(std::string(5'000, 'x'), WatchScope::tree), system_error(ENAMETOOLONG));
  EXPECT_EQ(open_fds(), before);
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(WatchTest, LinksInTreeAreNotFollowed) {
  tree_.write("../outside/file", "text");
  tree_.link("link", "../outside");
  watch({.existing = true});
  EXPECT_EQ(take(), (Log{"created* link", "ready /"}));
  tree_.write("../outside/other", "text");
  tree_.link("new", "../outside");
  run_to_mark();
  EXPECT_EQ(take(), Log{"created new"});
}

TEST_F(WatchTest, LinkToRootIsFollowed) {
  tree_.write("d/file", "text");
  tree_.link("link", "d");
  watch(tree_.at("link"), {});
  take();
  tree_.write("d/other", "");
  EXPECT_TRUE(run_until([&] { return has("written other"); }));
}

TEST_F(WatchTest, RelativeRootStaysSameDirectory) {
  const fs::path before = fs::current_path();
  tree_.write("d/file", "text");
  fs::current_path(tree_.root());
  Result<Watch> started = start("d/", {});
  fs::current_path(before);
  ASSERT_TRUE(started);
  EXPECT_EQ(started->root(), tree_.at("d"));
  EXPECT_TRUE(run_until([&] { return has("ready /"); }));
  fs::create_directory(tree_.at("d/e"));
  tree_.write("d/e/file", "");
  EXPECT_TRUE(run_until([&] { return has("created* e/file") || has("created e/file"); }));
}

TEST_F(WatchTest, NamesAreBytes) {
  watch();
  take();
  const std::string names[] = {"new\nline", "\xff\xfe", std::string(255, 'x'), " ", "-"};
  for (const std::string& name : names) tree_.write(name, "");
  run_to_mark();
  for (const std::string& name : names) EXPECT_TRUE(has("written " + name)) << name;
}

TEST_F(WatchTest, DeepTreeIsReportedUpToLongestPath) {
  watch();
  take();
  // A directory at a time, because a path of this length has no name.
  int directory = ::open(tree_.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::string name(200, 'd');
  for (int depth = 0; depth < 30; ++depth) {
    ASSERT_EQ(::mkdirat(directory, name.c_str(), 0700), 0);
    const int next = ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(std::exchange(directory, next));
  }
  ::close(directory);
  EXPECT_TRUE(run_until([&] { return !log_.empty() && log_.back().starts_with("unwatched"); }));
  run_to_mark();
}

TEST_F(WatchTest, LargeDirectoryIsReportedInParts) {
  for (int i = 0; i < 3'000; ++i) tree_.write("../large/" + std::to_string(i), "");
  watch();
  fs::rename(tree_.at("../large"), tree_.at("large"));
  expect_convergence();
  EXPECT_LE(longest_, 1'024u);
}

TEST_F(WatchTest, ActiveWatchIsListed) {
  watch();
  std::vector<std::string> labels;
  for_each_active(*loop_, [&](const ActiveInfo& info) {
    EXPECT_EQ(info.kind, ActiveKind::watch);
    EXPECT_EQ(name_of(info.kind), "watch");
    labels.push_back(info.label + "/");
  });
  EXPECT_EQ(labels, std::vector{tree_.root()});
  watch_.stop();
  EXPECT_FALSE(loop_->has_work());
}

}  // namespace
}  // namespace spate::testing
