// Watch in a World: the events of a simulated disk, and its limits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/kernels.h"
#include "spate/sim/disk.h"
#include "spate/sim/world.h"
#include "spate/watch.h"

extern "C" {
decltype(::openat) spate_sim_openat;
decltype(::inotify_init1) spate_sim_inotify_init1;
decltype(::inotify_add_watch) spate_sim_inotify_add_watch;
}

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Disk;
using sim::DiskOptions;
using sim::Host;
using sim::Outcome;
using sim::World;

// Watches a directory, and logs "created a", "moved a>b".
struct Watcher {
  Watcher(Loop& loop, const std::string& path, const WatchOptions& options) {
    auto started = Watch::start(
        loop, path,
        [this](const Result<std::span<const WatchEvent>>& events) {
          if (!events) {
            end = events.error();
            return;
          }
          for (const WatchEvent& event : *events) take(event);
          if (when_called) when_called();
        },
        options);
    if (started)
      watch = *std::move(started);
    else
      end = started.error();
  }
  virtual ~Watcher() = default;
  virtual void take(const WatchEvent& event) {
    std::string line(name_of(event.change));
    if (event.change == Change::moved) (line += ' ') += std::string(event.old_path) + '>';
    if (event.change != Change::moved) line += ' ';
    log.push_back(line + std::string(event.path));
  }

  Watch watch;
  std::error_code end;
  std::vector<std::string> log;
  std::function<void()> when_called;
};

class SimWatch : public ::testing::Test {
 protected:
  void start(const std::string& path = "/data", WatchScope scope = WatchScope::tree,
             bool existing = false) {
    host_.run([&](Loop& loop) {
      const WatchOptions options{.scope = scope, .existing = existing};
      watcher_ = std::make_unique<Watcher>(loop, path, options);
    });
    settle();
  }
  // Runs the World, and returns the log since the last call.
  std::vector<std::string> settle() {
    world_.run_for(10ms);
    return std::exchange(watcher_->log, {});
  }
  void TearDown() override {
    host_.run([&](Loop&) { watcher_.reset(); });
  }

  World world_{1};
  Host& host_ = world_.add_host("here");
  Disk& disk_ = host_.mount("/data");
  std::unique_ptr<Watcher> watcher_;
};

using Log = std::vector<std::string>;

TEST_F(SimWatch, ChangesAreReported) {
  start();
  EXPECT_FALSE(disk_.write("a", "text"));
  EXPECT_EQ(settle(), (Log{"created a", "changed a", "written a"}));
  EXPECT_FALSE(disk_.rename("a", "b"));
  EXPECT_EQ(settle(), (Log{"moved a>b"}));
  EXPECT_FALSE(disk_.remove("b"));
  EXPECT_EQ(settle(), (Log{"removed b"}));
}

TEST_F(SimWatch, NewDirectoryIsWatched) {
  start();
  EXPECT_FALSE(disk_.make_directory("dir"));
  EXPECT_EQ(settle(), (Log{"created dir"}));
  EXPECT_FALSE(disk_.write("dir/a", ""));
  EXPECT_EQ(settle(), (Log{"created dir/a", "written dir/a"}));
  EXPECT_FALSE(disk_.rename("dir", "other"));
  EXPECT_EQ(settle(), (Log{"moved dir>other"}));
  EXPECT_FALSE(disk_.remove("other/a"));
  EXPECT_FALSE(disk_.remove("other"));
  EXPECT_EQ(settle(), (Log{"removed other/a", "removed other"}));
}

TEST_F(SimWatch, RemovedRootEndsWatch) {
  EXPECT_FALSE(disk_.make_directory("dir"));
  start("/data/dir");
  EXPECT_FALSE(disk_.remove("dir"));
  settle();
  EXPECT_EQ(watcher_->end, std::errc::no_such_file_or_directory);
}

TEST_F(SimWatch, EqualRecordsAreMerged) {
  EXPECT_FALSE(disk_.write("a", ""));
  host_.run([](Loop&) {
    const int queue = spate_sim_inotify_init1(IN_NONBLOCK);
    EXPECT_GE(spate_sim_inotify_add_watch(queue, "/data/a", IN_MODIFY), 0);
    const int file = spate_sim_openat(AT_FDCWD, "/data/a", O_WRONLY);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(spate_sim_write(file, "x", 1), 1);
    char records[8 * sizeof(inotify_event)];
    EXPECT_EQ(spate_sim_read(queue, records, sizeof(records)), long{sizeof(inotify_event)});
    for (const int fd : {queue, file}) EXPECT_EQ(spate_sim_close(fd), 0);
  });
}

TEST_F(SimWatch, FullQueueIsReported) {
  disk_.set_options({.max_queued_events = 4});
  start();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(disk_.make_directory(std::to_string(i)));
  const Log log = settle();
  EXPECT_EQ(std::ranges::count(log, "overflow "), 1);
  EXPECT_EQ(std::ranges::count(log, "created 9"), 1);
}

// The kernel has a queue of more than one read, so changes can follow the record of the overflow.
TEST_F(SimWatch, RecordsOlderThanOverflowReportAreDropped) {
  disk_.set_options({.max_queued_events = 2'000});
  start();
  host_.run([&](Loop&) { watcher_->watch.pause(); });
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_FALSE(disk_.make_directory("dir"));
    EXPECT_FALSE(disk_.remove("dir"));
  }
  EXPECT_FALSE(disk_.make_directory("lost"));
  watcher_->when_called = [&] {
    EXPECT_FALSE(disk_.write("old", ""));
    EXPECT_FALSE(disk_.remove("old"));
    watcher_->when_called = nullptr;
  };
  host_.run([&](Loop&) { watcher_->watch.resume(); });
  const Log log = settle();
  EXPECT_EQ(std::ranges::count(log, "overflow "), 1);
  EXPECT_EQ(std::ranges::count(log, "created old"), 0);
  EXPECT_EQ(std::ranges::count(log, "removed old"), 0);
  EXPECT_EQ(std::ranges::count(log, "created lost"), 1);
  EXPECT_EQ(log.back(), "ready ");
}

TEST_F(SimWatch, ExistingEntriesAreReportedAgainAfterOverflow) {
  disk_.set_options({.max_queued_events = 4});
  EXPECT_FALSE(disk_.make_directory("dir"));
  EXPECT_FALSE(disk_.make_directory("dir/below"));
  EXPECT_FALSE(disk_.write("dir/below/a", ""));
  for (const WatchScope scope : {WatchScope::tree, WatchScope::directory}) {
    start("/data", scope, true);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(disk_.write("b", "text"));
    Log log = settle();
    log.erase(log.begin(), std::ranges::find(log, "overflow "));
    const Log all = {"overflow ",         "created b",           "created dir",
                     "created dir/below", "created dir/below/a", "ready "};
    const Log listed = {"overflow ", "created b", "created dir", "ready "};
    EXPECT_EQ(log, scope == WatchScope::tree ? all : listed);
    EXPECT_FALSE(disk_.remove("b"));
    settle();
  }
}

TEST_F(SimWatch, RootThatIsRemovedDuringOverflowEndsWatch) {
  disk_.set_options({.max_queued_events = 4});
  EXPECT_FALSE(disk_.make_directory("dir"));
  start("/data/dir", WatchScope::directory);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(disk_.write("dir/a", "text"));
  EXPECT_FALSE(disk_.remove("dir/a"));
  EXPECT_FALSE(disk_.remove("dir"));
  settle();
  EXPECT_EQ(watcher_->end, std::errc::no_such_file_or_directory);
}

TEST_F(SimWatch, LimitsAreErrors) {
  disk_.set_options({.max_user_instances = 0});
  start();
  EXPECT_EQ(watcher_->end, std::errc::too_many_files_open);
  disk_.set_options({.max_user_watches = 0});
  start();
  EXPECT_EQ(watcher_->end, std::errc::no_space_on_device);
  disk_.set_options({.max_user_watches = 1});
  EXPECT_FALSE(disk_.make_directory("dir"));
  start();
  EXPECT_FALSE(watcher_->end);
}

TEST_F(SimWatch, EndedWatchFreesItsLimits) {
  disk_.set_options({.max_user_instances = 1, .max_user_watches = 2});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(disk_.make_directory("dir"));
    start();
    EXPECT_FALSE(watcher_->end);
    EXPECT_FALSE(disk_.remove("dir"));
    EXPECT_EQ(settle(), (Log{"removed dir"}));
    EXPECT_FALSE(disk_.make_directory("other"));
    EXPECT_EQ(settle(), (Log{"created other"}));
    EXPECT_FALSE(disk_.remove("other"));
    host_.run([&](Loop&) { watcher_.reset(); });
    world_.run_for(10ms);
  }
}

TEST_F(SimWatch, DirectoryAboveLimitIsReported) {
  disk_.set_options({.max_user_watches = 1});
  start();
  EXPECT_FALSE(disk_.make_directory("dir"));
  EXPECT_EQ(settle(), (Log{"created dir", "unwatched dir"}));
}

TEST_F(SimWatch, PathOutsideOfDiskIsRefused) {
  start("/tmp");
  EXPECT_EQ(watcher_->end, std::errc::function_not_supported);
}

TEST_F(SimWatch, CrashEndsWatchAndFreesItsLimits) {
  disk_.set_options({.max_user_instances = 1});
  start();
  host_.crash();
  host_.restart();
  start();
  EXPECT_FALSE(watcher_->end);
  EXPECT_FALSE(disk_.write("a", ""));
  EXPECT_EQ(settle(), (Log{"created a", "written a"}));
}

}  // namespace
}  // namespace spate::testing
