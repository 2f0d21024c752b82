// Disks of a World: latency, capacity, faults, and what a power cut leaves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "spate/file.h"
#include "spate/http/client.h"
#include "spate/http/files.h"
#include "spate/http/server.h"
#include "spate/sim/disk.h"
#include "spate/sim/world.h"
#include "spate/timer.h"
#include "tests/support/seeds.h"

extern "C" decltype(::openat) spate_sim_openat;
extern "C" decltype(::pread) spate_sim_pread;
extern "C" decltype(::rename) spate_sim_rename;

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Disk;
using sim::DiskOptions;
using sim::Host;
using sim::Outcome;
using sim::World;

class SimDisk : public ::testing::Test {
 protected:
  // Runs an operation of the library to its end.
  template <class Start>
  void finish(Start start) {
    bool is_over = false;
    FileOperation operation = host_.run([&](Loop& loop) { return start(loop, is_over); });
    EXPECT_EQ(world_.run_until([&] { return is_over; }, 1h), Outcome::done);
    host_.run([&](Loop&) { operation = {}; });
  }
  std::error_code write(const std::string& path, const std::string& text, bool syncs = false) {
    std::error_code result;
    finish([&](Loop& loop, bool& is_over) {
      return write_file(loop, path, bytes_of(text),
                        [&](std::error_code error) {
                          result = error;
                          is_over = true;
                        },
                        {.sync = syncs});
    });
    return result;
  }
  Result<std::string> read(const std::string& path) {
    Result<std::string> result;
    finish([&](Loop& loop, bool& is_over) {
      return read_file(loop, path, 1'000'000, [&](Result<std::string> text) {
        result = std::move(text);
        is_over = true;
      });
    });
    return result;
  }
  Nanos duration_of(auto call) {
    const Nanos begin = world_.now();
    call();
    return world_.now() - begin;
  }

  World world_{1};
  Host& host_ = world_.add_host("here");
};

TEST_F(SimDisk, FileIsWrittenAndReadBelowItsPathOnly) {
  Disk& disk = host_.mount("/data");
  EXPECT_FALSE(disk.make_directory("dir"));
  EXPECT_FALSE(write("/data/dir/a", "text"));
  EXPECT_EQ(must(read("/data/dir/a")), "text");
  EXPECT_EQ(must(disk.read("dir/a")), "text");
  EXPECT_EQ(disk.list(), (std::vector<std::string>{"dir/", "dir/a"}));
  EXPECT_EQ(disk.used(), 4u);
  EXPECT_EQ(read("/data/b").error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(read("/data/dir").error(), std::errc::is_a_directory);
  EXPECT_FALSE(read("/database/dir/a"));
}

TEST_F(SimDisk, BadPathsAreErrors) {
  Disk& disk = host_.mount("/data");
  EXPECT_FALSE(disk.write("a", "text"));
  EXPECT_EQ(disk.write("a/b", ""), std::errc::not_a_directory);
  EXPECT_EQ(disk.write("", ""), std::errc::is_a_directory);
  EXPECT_EQ(disk.write(std::string(256, 'x'), ""), std::errc::filename_too_long);
  EXPECT_EQ(disk.make_directory("a"), std::errc::file_exists);
  EXPECT_EQ(disk.make_directory("b/c"), std::errc::no_such_file_or_directory);
  EXPECT_EQ(disk.remove("b"), std::errc::no_such_file_or_directory);
  EXPECT_FALSE(disk.make_directory("d"));
  EXPECT_FALSE(disk.write("d/e", ""));
  EXPECT_EQ(disk.remove("d"), std::errc::directory_not_empty);
  EXPECT_EQ(disk.rename("d", "d/f"), std::errc::invalid_argument);
  EXPECT_EQ(disk.rename("a", "d"), std::errc::is_a_directory);
  EXPECT_EQ(disk.rename("d", "a"), std::errc::not_a_directory);
  EXPECT_EQ(disk.read("d").error(), std::errc::is_a_directory);
  EXPECT_EQ(must(disk.read("/d/../a")), "text");
}

TEST_F(SimDisk, ReadWaitsForDiskUnlessCached) {
  Disk& disk = host_.mount("/data", {.latency = 5ms});
  EXPECT_FALSE(disk.write("a", "text"));
  EXPECT_LT(duration_of([&] { (void)read("/data/a"); }), 1ms);
  disk.drop_caches();
  EXPECT_GE(duration_of([&] { EXPECT_EQ(must(read("/data/a")), "text"); }), 5ms);
  EXPECT_LT(duration_of([&] { (void)read("/data/a"); }), 1ms);
}

TEST_F(SimDisk, SyncWaitsForDisk) {
  host_.mount("/data", {.latency = 5ms});
  EXPECT_LT(duration_of([&] { EXPECT_FALSE(write("/data/a", "text")); }), 1ms);
  // The file and its directory are synced.
  EXPECT_GE(duration_of([&] { EXPECT_FALSE(write("/data/a", "text", true)); }), 10ms);
}

TEST_F(SimDisk, FullDiskLeavesOldFile) {
  Disk& disk = host_.mount("/data", {.capacity = 10});
  EXPECT_FALSE(write("/data/a", "12345"));
  EXPECT_EQ(write("/data/a", "123456"), std::errc::no_space_on_device);
  EXPECT_EQ(must(disk.read("a")), "12345");
  EXPECT_EQ(disk.list().size(), 1u);
  disk.set_options({});
  EXPECT_FALSE(write("/data/a", "123456"));
}

TEST_F(SimDisk, InjectedFaultsStrike) {
  Disk& disk = host_.mount("/data");
  EXPECT_EQ(world_.fail_calls("fsync.EIO@1"), "");
  EXPECT_EQ(write("/data/a", "text", true), std::errc::io_error);
  EXPECT_EQ(disk.list().size(), 0u);
  EXPECT_EQ(world_.fail_calls("read.short=.7,write.short=.7,*.EINTR=.2"), "");
  const std::string text(1000, 'x');
  EXPECT_FALSE(write("/data/a", text, true));
  EXPECT_EQ(must(read("/data/a")), text);
}

TEST_F(SimDisk, SyncOfDirectorySavesItsNames) {
  Disk& disk = host_.mount("/data");
  EXPECT_FALSE(write("/data/a", "text", true));
  host_.crash();
  EXPECT_EQ(disk.list().size(), 0u + 1u);
  host_.restart();
  EXPECT_EQ(must(read("/data/a")), "text");
}

TEST_F(SimDisk, FilesOfCrashedHostFail) {
  Disk& disk = host_.mount("/data");
  EXPECT_FALSE(disk.write("a", "text"));
  disk.sync();
  std::optional<File> file;
  finish([&](Loop& loop, bool& is_over) {
    return File::open(loop, "/data/a", {}, [&](Result<File> opened) {
      file = must(std::move(opened));
      is_over = true;
    });
  });
  host_.crash();
  host_.restart();
  file.reset();
  EXPECT_EQ(must(read("/data/a")), "text");
}

TEST_F(SimDisk, FileIsNotRenamedToAnotherDisk) {
  Disk& disk = host_.mount("/data");
  Disk& other = host_.mount("/other");
  EXPECT_FALSE(disk.write("a", "text"));
  host_.run([](Loop&) {
    for (const char* to : {"/other/a", "/tmp/spate_never_made"}) {
      EXPECT_EQ(spate_sim_rename("/data/a", to), -1);
      EXPECT_EQ(errno, EXDEV);
    }
  });
  EXPECT_EQ(must(disk.read("a")), "text");
  EXPECT_TRUE(other.list().empty());
}

// The program is gone, though the test still has its number.
TEST_F(SimDisk, OpenFileOfCrashedHostCannotBeRead) {
  Disk& disk = host_.mount("/data");
  EXPECT_FALSE(disk.write("a", "text"));
  disk.sync();
  const int fd = host_.run([](Loop&) { return spate_sim_openat(AT_FDCWD, "/data/a", O_RDONLY); });
  char text[4] = {};
  const auto read_it = [&](Loop&) { return spate_sim_pread(fd, text, sizeof(text), 0); };
  EXPECT_EQ(host_.run(read_it), 4);
  host_.crash();
  host_.restart();
  EXPECT_EQ(host_.run(read_it), -1);
  EXPECT_EQ(errno, EIO);
}

// ---- power cuts

// Replaces a file again and again, and notes the last version that was reported as written.
struct Writer {
  Writer(Loop& its_loop, bool sync, int& its_done) : loop(its_loop), syncs(sync), done(its_done) {
    next();
  }
  void next() {
    operation = write_file(loop, "/data/a", bytes_of(text_of_version(done + 1)),
                           [this](std::error_code error) {
                             if (error) return;
                             ++done;
                             next();
                           },
                           {.sync = syncs});
  }
  static std::string text_of_version(int version) {
    return std::string(10'000, static_cast<char>('a' + version % 26)) + std::to_string(version);
  }

  Loop& loop;
  const bool syncs;
  int& done;
  FileOperation operation;
};

// Returns the version of the file after a power cut; -1 if it is damaged, 0 if it is missing.
int version_left(std::uint64_t seed, bool syncs, int& done) {
  World world(seed);
  Host& host = world.add_host("here");
  Disk& disk = host.mount("/data", {.latency = 1ms, .jitter = 3ms});
  host.boot([&](Loop& loop) { return std::make_unique<Writer>(loop, syncs, done); });
  world.run_for(Nanos{static_cast<std::int64_t>(world.draw(50'000'000))});
  host.crash();
  const Result<std::string> text = disk.read("a");
  if (!text) return 0;
  for (int version = 1; version <= done + 1; ++version)
    if (*text == Writer::text_of_version(version)) return version;
  return -1;
}

TEST(SimPowerCut, SyncedFileIsWholeAndNotOld) {
  for (const std::uint64_t seed : seeds(100)) {
    int done = 0;
    const int version = version_left(seed, true, done);
    EXPECT_TRUE(version == done || version == done + 1) << seed << ": " << version << ", " << done;
  }
}

TEST(SimPowerCut, RunsOfSeedAreEqual) {
  int done = 0;
  int again = 0;
  EXPECT_EQ(version_left(7, true, done), version_left(7, true, again));
  EXPECT_EQ(done, again);
}

// Writes the file in place, and then a name.
std::set<std::string> states_after_cut(bool syncs_file) {
  std::set<std::string> states;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World world(seed);
    Host& host = world.add_host("here");
    Disk& disk = host.mount("/data");
    EXPECT_FALSE(disk.write("a", std::string(8192, 'o')));
    disk.sync();
    EXPECT_FALSE(disk.write("a", std::string(8192, 'n')));
    if (syncs_file) disk.sync();
    EXPECT_FALSE(disk.write("b", ""));
    EXPECT_FALSE(disk.rename("b", "c"));
    host.crash();
    const std::string text = must(disk.read("a"));
    std::string state;
    for (std::size_t at = 0; at < text.size(); at += 4096) state += text[at];
    for (const std::string& path : disk.list()) state += path;
    states.insert(state);
  }
  return states;
}

TEST(SimPowerCut, EachUnsyncedBlockIsOldOrNewAndNamesAreLostInOrder) {
  const std::set<std::string> states = states_after_cut(false);
  for (const char* state : {"ooa", "nna", "ona", "noa", "nnab", "nnac"})
    EXPECT_TRUE(states.contains(state)) << state;
  EXPECT_FALSE(states.contains("nnabc"));
  EXPECT_EQ(states_after_cut(true), (std::set<std::string>{"nna", "nnab", "nnac"}));
}

// ---- servers

struct DiskServer {
  explicit DiskServer(Loop& loop)
      : files(must(http::Files::open("/data"))),
        server(must(http::serve(loop, Address::any_ipv6(7012), files))) {}

  http::Files files;
  http::Server server;
};

// Measures how late a timer of a millisecond is called.
struct Ticker {
  explicit Ticker(World& its_world, Loop& loop)
      : world(its_world), timer(loop, bind<&Ticker::on_tick>(this)) {
    timer.start(1ms, 1ms);
  }
  void on_tick() {
    worst = std::max(worst, world.now() - last - 1ms);
    last = world.now();
    ++ticks;
  }

  World& world;
  Timer timer;
  Nanos last = world.now();
  Nanos worst{0};
  int ticks = 0;
};

TEST(SimDiskServer, ColdFileDoesNotDelayLoop) {
  World world(1);
  Host& here = world.add_host("here");
  Host& there = world.add_host("there");
  Disk& disk = here.mount("/data", {.latency = 5ms});
  const std::string large(1'500'000, 'x');
  EXPECT_FALSE(disk.write("large", large));
  disk.drop_caches();
  auto server = here.run([](Loop& loop) { return std::make_unique<DiskServer>(loop); });
  auto ticker = here.run([&](Loop& loop) { return std::make_unique<Ticker>(world, loop); });
  auto client = there.run(
      [](Loop& loop) { return std::make_unique<http::Client>(must(http::Client::create(loop))); });
  std::string text;
  http::Call call = there.run([&](Loop&) {
    return client->fetch(
        "http://" + here.address(7012).to_string() + "/large",
        [&](Result<http::Response> response) { text = must(std::move(response)).text(); },
        {.max_body = 10'000'000});
  });
  EXPECT_EQ(world.run_until([&] { return !text.empty(); }, 1min), Outcome::done);
  EXPECT_TRUE(text == large);
  EXPECT_LT(ticker->worst, 1ms);
  EXPECT_GE(ticker->ticks, 15);  // The file was read in pieces, each by the pool.
  there.run([&](Loop&) {
    call.cancel();
    client.reset();
  });
  here.run([&](Loop&) {
    server.reset();
    ticker.reset();
  });
}

}  // namespace
}  // namespace spate::testing
