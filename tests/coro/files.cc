// Awaitables of a File, and their cancellation.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/fault.h"
#include "spate/coro/file.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/offload.h"
#include "tests/support/own_tree.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

class CoroFiles : public ::testing::Test {
 protected:
  CoroFiles() : loop_(must(Loop::create())) {}

  OwnTree tree_;
  std::unique_ptr<Loop> loop_;
  ThreadPool pool_{{.max_threads = 1}};
};

Task<Result<std::string>> session(std::string path, ThreadPool* pool) {
  FileOptions options;
  options.access = FileAccess::read_write;
  options.creation = FileCreation::always_new;
  options.pool = pool;
  File file = co_await coro::or_return(coro::open_file(path, options));
  Buffer bytes;
  bytes.append("hello world");
  co_await coro::or_return(coro::write_at(file, 0, std::move(bytes)));
  co_await coro::or_return(coro::write_at(file, 6, bytes_of("there")));
  co_await coro::or_return(coro::sync(file));
  co_await coro::or_return(coro::resize(file, 8));
  const FileStatus info = co_await coro::or_return(coro::stat(file));
  const Buffer read = co_await coro::or_return(coro::read_at(file, 1, 100));
  co_await coro::or_return(coro::close(file));
  std::string text = std::to_string(info.size) + ' ';
  for (const Bytes piece : read.pieces()) text.append(text_of(piece));
  co_return text;
}

TEST_F(CoroFiles, FileIsWrittenAndRead) {
  const Result<std::string> text = coro::run(*loop_, session(tree_.at("a"), &pool_));
  EXPECT_EQ(text, "8 ello th");
}

TEST_F(CoroFiles, ErrorOfOpenIsReturned) {
  tree_.write("a", "old");
  const Result<std::string> text = coro::run(*loop_, session(tree_.at("a"), &pool_));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error(), std::error_code(EEXIST, std::system_category()));
}

Task<Result<std::string>> read_in_turn(std::string path) {
  File file = co_await coro::or_return(coro::open_file(path));
  Buffer bytes;
  std::string text;
  std::uint64_t offset = 0;
  do {
    bytes = co_await coro::or_return(coro::read_at(file, offset, 3, std::move(bytes)));
    for (const Bytes piece : bytes.pieces()) text.append(text_of(piece)).append("|");
    offset += bytes.size();
  } while (!bytes.empty());
  co_return text;
}

TEST_F(CoroFiles, PiecesAreReadIntoSameMemory) {
  tree_.write("a", "12345678");
  EXPECT_EQ(coro::run(*loop_, read_in_turn(tree_.at("a"))), "123|456|78|");
}

Task<Result<std::string>> whole_files(std::string path) {
  Buffer bytes;
  bytes.append("first");
  co_await coro::or_return(coro::write_file(path, std::move(bytes)));
  co_await coro::or_return(coro::write_file(path, bytes_of("second")));
  const std::string moved = path + "2";
  co_await coro::or_return(coro::rename_file(path, moved));
  const FileStatus info = co_await coro::or_return(coro::stat_file(moved));
  std::string text = co_await coro::or_return(coro::read_file(moved, 100));
  co_await coro::or_return(coro::remove_file(moved));
  const Result<FileStatus> none = co_await coro::stat_file(moved);
  co_return text + ' ' + std::to_string(info.size) + (none ? " left" : " gone");
}

TEST_F(CoroFiles, WholeFilesAreWrittenMovedAndRemoved) {
  const Result<std::string> text = coro::run(*loop_, whole_files(tree_.at("a")));
  EXPECT_EQ(text, "second 6 gone");
}

Task<Result<void>> write_held(std::string path, ThreadPool* pool) {
  WriteFileOptions options;
  options.pool = pool;
  co_return co_await coro::write_file(path, bytes_of("new"), options);
}

TEST_F(CoroFiles, CancelledWriteLeavesOldFile) {
  tree_.write("a", "old");
  FaultPlan plan;
  std::atomic<bool> is_reached = false;
  std::atomic<bool> is_free = false;
  plan.before_nth(SystemCall::file_write, 1, [&] {
    is_reached = true;
    is_reached.notify_all();
    is_free.wait(false);
  });
  {
    ThreadPool pool({.max_threads = 1});
    const FaultScope faults(plan);
    Scope scope(*loop_);
    scope.spawn(write_held(tree_.at("a"), &pool));
    is_reached.wait(false);
    scope.cancel();
    is_free = true;
    is_free.notify_all();
    EXPECT_FALSE(loop_->run());
  }  // The pool's thread has ended.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tree_.root())) {
    EXPECT_EQ(entry.path().filename(), "a");
    EXPECT_EQ(entry.file_size(), 3u);
    ++files;
  }
  EXPECT_EQ(files, 1);
  std::string text;
  std::ifstream(tree_.at("a")) >> text;
  EXPECT_EQ(text, "old");
}

}  // namespace
}  // namespace spate::testing
