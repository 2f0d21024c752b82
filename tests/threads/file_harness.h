// Shared by the tests of files: a directory, a loop, a pool, and a call that waits.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/file.h"
#include "spate/loop.h"
#include "spate/offload.h"
#include "tests/support/own_tree.h"

namespace spate::testing {

inline std::string text_in(const Buffer& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.copy(std::as_writable_bytes(std::span(text)));
  return text;
}

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::error_code errno_code(int error) { return {error, std::system_category()}; }

class FileTest : public ::testing::Test {
 protected:
  // Holds the first call of a kind until go_on(). The thread that makes it is then in the middle of
  // an operation.
  FaultPlan& hold(SystemCall call, std::uint64_t nth = 1) {
    return plan_.before_nth(call, nth, [this] {
      reached_.count_down();
      held_.wait();
    });
  }
  void go_on() { held_.count_down(); }

  FileOptions options(FileAccess access = FileAccess::read) {
    return {.access = access,
            .creation = access == FileAccess::read ? FileCreation::never : FileCreation::if_missing,
            .pool = &pool_};
  }
  Result<File> opened(const std::string& path, const FileOptions& how) {
    Result<File> found = std::unexpected(errno_code(EINPROGRESS));
    const auto operation =
        File::open(*loop_, path, how, [&](Result<File> file) { found = std::move(file); });
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    return found;
  }
  File file_of(const std::string& name, const FileOptions& how) {
    Result<File> file = opened(tree_.at(name), how);
    EXPECT_TRUE(file) << file.error().message();
    return file ? *std::move(file) : File();
  }
  void run() { EXPECT_FALSE(loop_->run() || loop_->has_work()); }
  std::error_code written(File& file, std::uint64_t offset, std::string_view text) {
    std::error_code result = errno_code(EINPROGRESS);
    const auto operation =
        file.write_at(offset, bytes_of(text), [&](std::error_code error) { result = error; });
    run();
    return result;
  }
  Result<std::string> read(File& file, std::uint64_t offset, std::size_t count) {
    Result<std::string> result = std::unexpected(errno_code(EINPROGRESS));
    const auto operation = file.read_at(offset, count, [&](Result<Buffer> bytes) {
      if (bytes) {
        result = text_in(*bytes);
      } else {
        result = std::unexpected(bytes.error());
      }
    });
    run();
    return result;
  }
  std::error_code replaced(const std::string& name, std::string_view text,
                           const WriteFileOptions& how) {
    std::error_code result = errno_code(EINPROGRESS);
    const auto operation = write_file(
        *loop_, tree_.at(name), bytes_of(text), [&](std::error_code error) { result = error; },
        how);
    run();
    return result;
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(tree_.root()))
      found.push_back(entry.path().filename().string());
    return found;
  }

  OwnTree tree_;
  std::latch reached_{1};
  std::latch held_{1};
  FaultPlan plan_;
  std::unique_ptr<Loop> loop_ = *Loop::create();
  ThreadPool pool_{{.max_threads = 2, .name = "files"}};
};

}  // namespace spate::testing
