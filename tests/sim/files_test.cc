// Files of a host: on the system's files, with the threads and the faults of the World.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "spate/file.h"
#include "spate/sim/world.h"
#include "spate/watch.h"
#include "tests/support/own_tree.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::string_view kFileText =
    "a text that is written in several pieces, if calls are short";

// Replaces a file, and reads it.
struct FileSession {
  FileSession(Loop& loop, std::string its_path) : path(std::move(its_path)) {
    operation = write_file(loop, path, bytes_of(kFileText),
                           [this, &loop](std::error_code error) {
                             written = error;
                             operation =
                                 read_file(loop, path, 1'000, [this](Result<std::string> found) {
                                   text = found.value_or("");
                                   is_over = true;
                                 });
                           },
                           {.sync = true});
  }

  std::string path;
  FileOperation operation;
  std::error_code written;
  std::string text;
  bool is_over = false;
};

// Reads a file in pieces, all into the same memory.
struct PieceSession {
  explicit PieceSession(File its_file) : file(std::move(its_file)) { read({}); }

  void read(Buffer reused) {
    operation = file.read_at(text.size(), 7, std::move(reused), [this](Result<Buffer> found) {
      is_over = !found || found->empty();
      if (is_over) return;
      for (const Bytes piece : found->pieces()) text.append(text_of(piece));
      read(*std::move(found));
    });
  }

  File file;
  FileOperation operation;
  std::string text;
  bool is_over = false;
};

class SimFiles : public ::testing::Test {
 protected:
  // Returns the trace of a run.
  std::uint64_t run(std::uint64_t seed, std::string_view faults) {
    World world(seed);
    Host& host = world.add_host("here");
    EXPECT_EQ(world.fail_calls(faults), "");
    host.delay_work(10ms);
    auto session =
        host.run([&](Loop& loop) { return std::make_unique<FileSession>(loop, tree_.at("a")); });
    EXPECT_EQ(world.run_until([&] { return session->is_over; }, 1min), Outcome::done);
    written_ = session->written;
    text_ = session->text;
    host.run([&](Loop&) { session.reset(); });
    return world.trace();
  }
  std::size_t count_of_files() {
    const std::filesystem::directory_iterator entries(tree_.root());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  OwnTree tree_;
  std::error_code written_;
  std::string text_;
};

TEST_F(SimFiles, FileIsWrittenAndRead) {
  run(1, "");
  EXPECT_FALSE(written_);
  EXPECT_EQ(text_, kFileText);
}

TEST_F(SimFiles, ShortAndInterruptedCallsAreCompletedAndRepeatable) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    constexpr std::string_view kFaults = "read.short=.7,write.short=.7,*.EINTR=.2";
    const std::uint64_t trace = run(seed, kFaults);
    EXPECT_FALSE(written_) << seed;
    EXPECT_EQ(text_, kFileText) << seed;
    EXPECT_EQ(run(seed, kFaults), trace) << seed;
  }
}

TEST_F(SimFiles, PiecesAreReadIntoSameMemory) {
  tree_.write("a", std::string(kFileText));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    World world(seed);
    Host& host = world.add_host("here");
    EXPECT_EQ(world.fail_calls("read.short=.7,*.EINTR=.2"), "");
    host.delay_work(10ms);
    auto session = host.run([&](Loop& loop) {
      const int fd = ::open(tree_.at("a").c_str(), O_RDONLY | O_CLOEXEC);
      return std::make_unique<PieceSession>(File::adopt(loop, fd));
    });
    EXPECT_EQ(world.run_until([&] { return session->is_over; }, 1min), Outcome::done);
    EXPECT_EQ(session->text, kFileText) << seed;
    host.run([&](Loop&) { session.reset(); });
  }
}

TEST_F(SimFiles, FailedCallLeavesOldFile) {
  for (const std::string_view fault : {"fsync.EIO@1", "rename.EACCES"}) {
    tree_.write("a", "old");
    run(1, fault);
    EXPECT_TRUE(written_) << fault;
    EXPECT_EQ(text_, "old") << fault;
    EXPECT_EQ(count_of_files(), 1u) << fault;
  }
}

TEST_F(SimFiles, WatchIsRefused) {
  World world(1);
  Host& host = world.add_host("here");
  std::error_code error;
  host.run([&](Loop& loop) {
    const Result<Watch> watch =
        Watch::start(loop, tree_.root(), [](const Result<std::span<const WatchEvent>>&) {});
    error = watch ? std::error_code() : watch.error();
    return std::make_unique<int>();
  });
  EXPECT_EQ(world.run_until([&] { return bool{error}; }, 1min), Outcome::done);
  EXPECT_EQ(error, std::errc::function_not_supported);
}

}  // namespace
}  // namespace spate::testing
