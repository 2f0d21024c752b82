// read_file(), write_file(), FileWriter, and the functions for paths.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/file.h"
#include "spate/file_writer.h"
#include "spate/offload.h"
#include "tests/threads/file_harness.h"

namespace spate::testing {
namespace {

using WholeFileTest = FileTest;

// ---- whole files

TEST_F(WholeFileTest, ReadFileReturnsTextWithinLimit) {
  tree_.write("a", "four");
  std::vector<Result<std::string>> texts;
  std::vector<FileOperation> operations;
  for (const std::size_t limit : {std::size_t{4}, std::size_t{3}, SIZE_MAX}) {
    operations.push_back(read_file(*loop_, tree_.at("a"), limit, [&](Result<std::string> text) {
      texts.push_back(std::move(text));
    }));
    run();
  }
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[0], "four");
  EXPECT_EQ(texts[1].error(), errno_code(EFBIG));
  EXPECT_EQ(texts[2], "four");
}

TEST_F(WholeFileTest, ReadFileReadsFilesWithoutSize) {
  Result<std::string> text;
  auto operation = read_file(*loop_, "/proc/self/status", 1 << 20,
                             [&](Result<std::string> found) { text = std::move(found); });
  run();
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("Name:"));
  operation = read_file(*loop_, "/proc/self/status", 10,
                        [&](Result<std::string> found) { text = std::move(found); });
  run();
  EXPECT_EQ(text.error(), errno_code(EFBIG));
}

TEST_F(WholeFileTest, WriteFileReplacesWholeFile) {
  tree_.write("a", "a long old text");
  EXPECT_FALSE(replaced("a", "new", {.permissions = 0600, .sync = true, .pool = &pool_}));
  EXPECT_EQ(contents_of(tree_.at("a")), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  struct stat status{};
  ASSERT_EQ(::stat(tree_.at("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
}

TEST_F(WholeFileTest, WriteFileReplacesLink) {
  tree_.write("target", "kept");
  tree_.link("a", "target");
  EXPECT_FALSE(replaced("a", "new", {}));
  EXPECT_EQ(contents_of(tree_.at("target")), "kept");
  EXPECT_EQ(contents_of(tree_.at("a")), "new");
}

TEST_F(WholeFileTest, WriteFileLeavesDirectory) {
  std::filesystem::create_directory(tree_.at("a"));
  EXPECT_EQ(replaced("a", "new", {}), errno_code(EISDIR));
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(WholeFileTest, CancelledWriteFileLeavesNothing) {
  tree_.write("a", "old");
  {
    ThreadPool pool({.max_threads = 1});
    const FaultScope scope(hold(SystemCall::file_write));
    auto operation = write_file(*loop_, tree_.at("a"), bytes_of("new"),
                                [](std::error_code) { ADD_FAILURE(); }, {.pool = &pool});
    reached_.wait();
    EXPECT_EQ(names().size(), 2u);
    operation.cancel();
    go_on();
    run();
  }
  EXPECT_EQ(contents_of(tree_.at("a")), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(WholeFileTest, RenameAndRemoveReportTheirErrors) {
  tree_.write("a", "text");
  std::vector<std::error_code> errors;
  const auto note = [&](std::error_code error) { errors.push_back(error); };
  auto operation = rename_file(*loop_, tree_.at("a"), tree_.at("b"), note);
  run();
  EXPECT_EQ(contents_of(tree_.at("b")), "text");
  operation = rename_file(*loop_, tree_.at("a"), tree_.at("b"), note);
  run();
  operation = remove_file(*loop_, tree_.at("b"), note);
  run();
  operation = remove_file(*loop_, tree_.at("b"), note);
  run();
  EXPECT_EQ(errors, (std::vector<std::error_code>{{}, errno_code(ENOENT), {}, errno_code(ENOENT)}));
}

// ---- files in pieces

TEST_F(WholeFileTest, FileWriterPutsWholeFileInPlace) {
  tree_.write("a", "old");
  int progress = 0;
  std::error_code result = errno_code(EINPROGRESS);
  FileWriter writer(*loop_, tree_.at("a"), [&] { ++progress; }, {.sync = true, .pool = &pool_});
  std::string whole;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(static_cast<std::size_t>(i) * 100, static_cast<char>('a' + i % 26));
    writer.write(bytes_of(piece));
    whole += piece;
    EXPECT_FALSE(loop_->run(Run::no_wait));
    EXPECT_EQ(contents_of(tree_.at("a")), "old");
  }
  EXPECT_EQ(writer.size(), whole.size());
  writer.finish([&](std::error_code error) { result = error; });
  run();
  EXPECT_FALSE(result);
  EXPECT_EQ(contents_of(tree_.at("a")), whole);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_EQ(progress, 0);
}

TEST_F(WholeFileTest, FileWriterIsFullWhileDiskIsSlow) {
  const FaultScope scope(hold(SystemCall::file_write));
  std::optional<FileWriter> writer;
  int progress = 0;
  writer.emplace(
      *loop_, tree_.at("a"),
      [&] {
        ++progress;
        EXPECT_FALSE(writer->is_full());
        writer->finish([&](std::error_code error) {
          EXPECT_FALSE(error);
          writer.reset();
        });
      },
      WriteFileOptions{.pool = &pool_});
  const std::string half(FileWriter::kFull / 2, 'h');
  writer->write(bytes_of(half));
  reached_.wait();
  EXPECT_FALSE(writer->is_full());
  writer->write(bytes_of(half));
  EXPECT_TRUE(writer->is_full());
  go_on();
  run();
  EXPECT_EQ(progress, 1);
  EXPECT_FALSE(writer);
  EXPECT_EQ(contents_of(tree_.at("a")), half + half);
}

TEST_F(WholeFileTest, DestroyedFileWriterLeavesNothing) {
  tree_.write("a", "old");
  {
    ThreadPool pool({.max_threads = 1});
    const FaultScope scope(hold(SystemCall::file_write));
    std::optional<FileWriter> writer;
    writer.emplace(*loop_, tree_.at("a"), [] { ADD_FAILURE(); }, WriteFileOptions{.pool = &pool});
    writer->write(bytes_of("new"));
    reached_.wait();
    writer->finish([](std::error_code) { ADD_FAILURE(); });
    writer.reset();
    go_on();
    run();
  }
  EXPECT_EQ(contents_of(tree_.at("a")), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(WholeFileTest, FailedFileWriterReportsFirstError) {
  plan_.fail_nth(SystemCall::file_write, 2, ENOSPC);
  const FaultScope scope(plan_);
  std::error_code seen;
  std::error_code result;
  std::optional<FileWriter> writer;
  writer.emplace(
      *loop_, tree_.at("a"), [&] { seen = writer->error(); }, WriteFileOptions{.pool = &pool_});
  for (int i = 0; i < 3; ++i) {
    writer->write(bytes_of("piece"));
    run();
  }
  EXPECT_EQ(seen, errno_code(ENOSPC));
  EXPECT_TRUE(names().empty());
  writer->finish([&](std::error_code error) { result = error; });
  EXPECT_FALSE(result);
  run();
  EXPECT_EQ(result, errno_code(ENOSPC));
}

}  // namespace
}  // namespace spate::testing
