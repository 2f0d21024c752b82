// Failing system calls of a File: the error is reported, no descriptor and no temporary file stays.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/file.h"
#include "spate/loop.h"
#include "spate/offload.h"
#include "system/open_fds.h"
#include "tests/support/make_loop.h"
#include "tests/support/own_tree.h"
#include "tests/support/system_error.h"

namespace spate {
namespace {

using testing::system_error;

class FileFaults : public ::testing::Test {
 protected:
  // Opens, writes, syncs, reads and closes a file. Returns the first error.
  std::error_code session(std::string& text) {
    std::error_code first;
    std::vector<FileOperation> operations;
    const auto note = [&](std::error_code error) { first = first ? first : error; };
    File file;
    const FileOptions options{.access = FileAccess::read_write,
                              .creation = FileCreation::if_missing,
                              .truncate = true,
                              .pool = &pool_};
    operations.push_back(File::open(*loop_, tree_.at("a"), options, [&](Result<File> opened) {
      if (!opened) return note(opened.error());
      file = *std::move(opened);
      operations.push_back(file.write_at(0, bytes_of(kText), note));
      operations.push_back(file.sync(note));
      operations.push_back(file.resize(kText.size(), note));
      operations.push_back(file.read_at(0, 1'000, [&](const Result<Buffer>& bytes) {
        if (!bytes) return note(bytes.error());
        for (const Bytes piece : bytes->pieces()) text.append(text_of(piece));
      }));
      operations.push_back(file.stat([&](const Result<FileStatus>& info) {
        if (!info) note(info.error());
      }));
    }));
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    return first;
  }
  std::error_code replace(bool sync) {
    std::error_code result = system_error(EINPROGRESS);
    const auto operation =
        write_file(*loop_, tree_.at("a"), bytes_of(kText),
                   [&](std::error_code error) { result = error; }, {.sync = sync, .pool = &pool_});
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    return result;
  }
  std::string contents() {
    std::ifstream file(tree_.at("a"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t count_of_files() {
    const std::filesystem::directory_iterator entries(tree_.root());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  static constexpr std::string_view kText = "a text of forty-two bytes, or nearly so...";
  testing::OwnTree tree_;
  std::unique_ptr<Loop> loop_ = testing::make_loop();
  ThreadPool pool_{{.max_threads = 1}};
};

TEST_F(FileFaults, InterruptedAndShortCallsAreCompleted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FaultPlan plan;
    for (const SystemCall call : {SystemCall::open, SystemCall::file_read, SystemCall::file_write,
                                  SystemCall::sync, SystemCall::truncate})
      plan.fail_share(call, 0.3, EINTR, seed);
    plan.shorten_share(SystemCall::file_read, 0.5, 3, seed);
    plan.shorten_share(SystemCall::file_write, 0.5, 3, seed);
    const FaultScope scope(plan);
    std::string text;
    EXPECT_FALSE(session(text)) << seed;
    EXPECT_EQ(text, kText) << seed;
    EXPECT_FALSE(replace(true)) << seed;
    EXPECT_EQ(contents(), kText) << seed;
  }
}

TEST_F(FileFaults, EveryFailureIsReportedAndLeaksNothing) {
  std::string text;
  EXPECT_FALSE(session(text));
  const std::vector<int> before = testing::open_fds();
  for (const SystemCall call : {SystemCall::open, SystemCall::file_read, SystemCall::file_write,
                                SystemCall::sync, SystemCall::truncate, SystemCall::lstat}) {
    FaultPlan plan;
    plan.fail_nth(call, 1, EIO);
    const FaultScope scope(plan);
    EXPECT_EQ(session(text), system_error(EIO)) << static_cast<int>(call);
    EXPECT_EQ(plan.failures(call), 1u) << static_cast<int>(call);
    EXPECT_EQ(testing::open_fds(), before) << static_cast<int>(call);
  }
}

TEST_F(FileFaults, FailedReplacementLeavesOldFile) {
  for (const SystemCall call : {SystemCall::random, SystemCall::open, SystemCall::file_write,
                                SystemCall::sync, SystemCall::rename}) {
    tree_.write("a", "old");
    FaultPlan plan;
    plan.fail_nth(call, 1, ENOSPC);
    const FaultScope scope(plan);
    EXPECT_EQ(replace(true), system_error(ENOSPC)) << static_cast<int>(call);
    EXPECT_EQ(contents(), "old") << static_cast<int>(call);
    EXPECT_EQ(count_of_files(), 1u) << static_cast<int>(call);
  }
}

TEST_F(FileFaults, FailedSyncOfDirectoryIsReported) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::sync, 2, EIO);
  const FaultScope scope(plan);
  EXPECT_EQ(replace(true), system_error(EIO));
  EXPECT_EQ(contents(), kText);
  EXPECT_EQ(count_of_files(), 1u);
  EXPECT_FALSE(replace(false));
}

}  // namespace
}  // namespace spate
