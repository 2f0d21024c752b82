// File and the functions for paths: a pool's threads do the work, and do not block the loop.
#include "spate/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/offload.h"
#include "system/open_fds.h"
#include "tests/support/own_tree.h"
#include "tests/support/sanitizers.h"
#include "tests/threads/file_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// ---- opening

TEST(FileName, IsOneComponentOfPath) {
  for (const std::string_view name : {"a", "a.txt", ".a", "...", "a..", "\\", "a b", "\xc3\xa4"})
    EXPECT_TRUE(is_file_name(name)) << name;
  EXPECT_TRUE(is_file_name(std::string(255, 'a')));
  for (const std::string_view name : {"", ".", "..", "/", "/a", "a/", "../a", "a/..", "./a"})
    EXPECT_FALSE(is_file_name(name)) << name;
  EXPECT_FALSE(is_file_name(std::string_view("a\0", 2)));
  EXPECT_FALSE(is_file_name(std::string(256, 'a')));
}

TEST_F(FileTest, OpenReportsErrorOfSystem) {
  const Result<File> file = opened(tree_.at("missing"), options());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error(), errno_code(ENOENT));
}

TEST_F(FileTest, OpenIsNotCalledBackInside) {
  tree_.write("a", "text");
  bool is_called = false;
  const auto operation =
      File::open(*loop_, tree_.at("a"), options(), [&](const Result<File>&) { is_called = true; });
  EXPECT_FALSE(is_called);
  run();
  EXPECT_TRUE(is_called);
}

TEST_F(FileTest, OpenedDescriptorIsCloseOnExecAndNotStandard) {
  tree_.write("a", "text");
  const File file = file_of("a", options());
  EXPECT_GE(file.fd(), 3);
  EXPECT_NE(::fcntl(file.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(FileTest, OpenRefusesDirectoriesPipesAndSockets) {
  ASSERT_EQ(::mkfifo(tree_.at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(opened(tree_.root(), options()).error(), errno_code(EISDIR));
  EXPECT_EQ(opened(tree_.root(), options(FileAccess::write)).error(), errno_code(EISDIR));
  EXPECT_EQ(opened(tree_.at("pipe"), options()).error(), errno_code(ESPIPE));
  EXPECT_EQ(opened(tree_.at("pipe"), options(FileAccess::read_write)).error(), errno_code(ESPIPE));
  EXPECT_EQ(opened(tree_.at("pipe"), options(FileAccess::write)).error(), errno_code(ENXIO));
}

TEST_F(FileTest, OpenRefusesContradictoryOptions) {
  tree_.write("a", "text");
  FileOptions how = options();
  how.truncate = true;
  EXPECT_EQ(opened(tree_.at("a"), how).error(), errno_code(EINVAL));
  EXPECT_EQ(opened(tree_.at("a") + std::string(1, '\0') + "b", options()).error(),
            errno_code(EINVAL));
  EXPECT_EQ(contents_of(tree_.at("a")), "text");
}

TEST_F(FileTest, CreationFollowsOptions) {
  FileOptions how = options(FileAccess::write);
  how.creation = FileCreation::never;
  EXPECT_EQ(opened(tree_.at("a"), how).error(), errno_code(ENOENT));
  how.creation = FileCreation::always_new;
  how.permissions = 0640;
  const mode_t before = ::umask(0);
  EXPECT_TRUE(opened(tree_.at("a"), how));
  ::umask(before);
  struct stat status{};
  ASSERT_EQ(::stat(tree_.at("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0640u);
  EXPECT_EQ(opened(tree_.at("a"), how).error(), errno_code(EEXIST));
}

TEST_F(FileTest, TruncateEmptiesAndAppendGoesToEnd) {
  tree_.write("a", "old");
  FileOptions how = options(FileAccess::write);
  how.append = true;
  File appended = file_of("a", how);
  EXPECT_FALSE(written(appended, 0, " and new"));
  EXPECT_EQ(contents_of(tree_.at("a")), "old and new");
  how.append = false;
  how.truncate = true;
  EXPECT_TRUE(file_of("a", how).is_open());
  EXPECT_EQ(contents_of(tree_.at("a")), "");
}

// ---- reading and writing

TEST_F(FileTest, ReadsWhatWasWritten) {
  File file = file_of("a", options(FileAccess::read_write));
  EXPECT_FALSE(written(file, 0, "hello world"));
  EXPECT_FALSE(written(file, 6, "there"));
  EXPECT_EQ(read(file, 0, 100), "hello there");
  EXPECT_EQ(read(file, 6, 3), "the");
  EXPECT_EQ(read(file, 11, 5), "");
  EXPECT_EQ(read(file, 1'000, 5), "");
  EXPECT_EQ(read(file, 0, 0), "");
}

TEST_F(FileTest, MovesMoreThanOnePiece) {
  std::string large(3'500'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 1'000) large[i] = static_cast<char>('a' + i % 23);
  File file = file_of("a", options(FileAccess::read_write));
  EXPECT_FALSE(written(file, 1, large));
  EXPECT_EQ(read(file, 1, large.size() + 10), large);
  EXPECT_EQ(read(file, 2'000'001, SIZE_MAX), large.substr(2'000'000));
}

TEST_F(FileTest, ReadUsesMemoryAgain) {
  std::string large(2'500'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 1'000) large[i] = static_cast<char>('a' + i % 23);
  tree_.write("a", large);
  File file = file_of("a", options());
  Buffer bytes;
  const auto places = [&] {
    std::vector<const std::byte*> found;
    for (const Bytes piece : bytes.pieces()) found.push_back(piece.data());
    return found;
  };
  const auto read_again = [&](std::uint64_t offset, std::size_t count) {
    const auto operation = file.read_at(offset, count, std::move(bytes),
                                        [&](Result<Buffer> found) { bytes = std::move(*found); });
    run();
    return text_in(bytes);
  };
  EXPECT_EQ(read_again(0, large.size()), large);
  const std::vector<const std::byte*> first = places();
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(read_again(1, large.size()), large.substr(1));
  EXPECT_EQ(places(), first);
  EXPECT_EQ(read_again(large.size(), 10), "");
  EXPECT_EQ(read_again(5, 10), large.substr(5, 10));
  EXPECT_EQ(places().front(), first.front());
  EXPECT_EQ(read_again(0, large.size()), large);
  EXPECT_EQ(places(), first);
}

TEST_F(FileTest, ReadReplacesBytesThatOthersReferTo) {
  tree_.write("a", "text");
  File file = file_of("a", options());
  const std::string old(2'000, 'o');
  Buffer bytes;
  ASSERT_TRUE(bytes.append(old));
  Buffer shared;
  ASSERT_TRUE(shared.append_shared(bytes));
  std::string text;
  const auto operation = file.read_at(0, 4, std::move(bytes),
                                      [&](const Result<Buffer>& found) { text = text_in(*found); });
  run();
  EXPECT_EQ(text, "text");
  EXPECT_EQ(text_in(shared), old);
}

TEST_F(FileTest, FailedReadIntoUsedMemoryIsReported) {
  File writer = file_of("a", options(FileAccess::write));
  Buffer bytes;
  ASSERT_TRUE(bytes.append("old"));
  std::error_code result;
  const auto operation = writer.read_at(0, 4, std::move(bytes), [&](const Result<Buffer>& found) {
    result = found ? std::error_code() : found.error();
  });
  run();
  EXPECT_EQ(result, errno_code(EBADF));
}

TEST_F(FileTest, WritesEveryPieceOfBuffer) {
  Buffer bytes;
  ASSERT_TRUE(bytes.append(std::string(70'000, 'a')));
  static constexpr std::string_view kText = "a text that is only referred to";
  ASSERT_TRUE(bytes.append_reference(bytes_of(kText), [](void*) {}, nullptr));
  File file = file_of("a", options(FileAccess::write));
  std::error_code result = errno_code(EINPROGRESS);
  const auto operation =
      file.write_at(2, std::move(bytes), [&](std::error_code error) { result = error; });
  run();
  EXPECT_FALSE(result);
  EXPECT_EQ(contents_of(tree_.at("a")),
            std::string(2, '\0') + std::string(70'000, 'a') + std::string(kText));
}

TEST_F(FileTest, OperationsOfOneFileAreInOrder) {
  File file = file_of("a", options(FileAccess::read_write));
  std::string order;
  std::vector<FileOperation> operations;
  const auto note = [&](char sign) {
    return [&order, sign](std::error_code error) { order += error ? '!' : sign; };
  };
  for (char sign = 'a'; sign <= 'z'; ++sign)
    operations.push_back(file.write_at(0, bytes_of(std::string_view(&sign, 1)), note(sign)));
  operations.push_back(file.sync(note('S')));
  operations.push_back(file.resize(3, note('R')));
  operations.push_back(file.close(note('C')));
  EXPECT_FALSE(file.is_open());
  run();
  EXPECT_EQ(order, "abcdefghijklmnopqrstuvwxyzSRC");
  EXPECT_EQ(contents_of(tree_.at("a")), std::string("z\0\0", 3));
}

TEST_F(FileTest, DevicesAreReadAndWritten) {
  File null = *opened("/dev/null", options(FileAccess::read_write));
  EXPECT_FALSE(written(null, 0, "text"));
  EXPECT_EQ(read(null, 0, 5), "");
  File full = *opened("/dev/full", options(FileAccess::read_write));
  EXPECT_EQ(written(full, 0, "text"), errno_code(ENOSPC));
  EXPECT_EQ(read(full, 0, 2), std::string(2, '\0'));
}

TEST_F(FileTest, WrongAccessIsReported) {
  tree_.write("a", "text");
  File reader = file_of("a", options());
  EXPECT_EQ(written(reader, 0, "more"), errno_code(EBADF));
  FileOptions how = options(FileAccess::write);
  File writer = file_of("a", how);
  EXPECT_EQ(read(writer, 0, 1).error(), errno_code(EBADF));
  EXPECT_EQ(read(reader, UINT64_MAX, 1).error(), errno_code(EINVAL));
}

TEST_F(FileTest, StatDescribesFile) {
  tree_.write("a", "text");
  ASSERT_EQ(::chmod(tree_.at("a").c_str(), 0604), 0);
  File file = file_of("a", options());
  std::vector<FileStatus> found;
  const auto note = [&](const Result<FileStatus>& status) {
    found.push_back(status.value_or(FileStatus{}));
  };
  const auto by_file = file.stat(note);
  run();
  const auto by_path = stat_file(*loop_, tree_.at("a"), note);
  run();
  const auto of_directory = stat_file(*loop_, tree_.root(), note);
  run();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0].mode, S_IFREG | 0604u);
  EXPECT_EQ(found[0].size, 4);
  EXPECT_EQ(found[0].modified, WallTime(std::chrono::seconds(OwnTree::kWritten)));
  EXPECT_TRUE(S_ISDIR(found[2].mode));
}

TEST_F(FileTest, ClosedFileReportsEbadf) {
  File file = file_of("a", options(FileAccess::read_write));
  const int fd = file.fd();
  std::error_code result = errno_code(EINPROGRESS);
  const auto operation = file.close([&](std::error_code error) { result = error; });
  EXPECT_EQ(file.fd(), -1);
  run();
  EXPECT_FALSE(result);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(written(file, 0, "text"), errno_code(EBADF));
}

TEST_F(FileTest, AdoptTakesDescriptor) {
  tree_.write("a", "text");
  const int fd = ::open(tree_.at("a").c_str(), O_RDONLY | O_CLOEXEC);
  {
    File file = File::adopt(*loop_, fd);
    EXPECT_EQ(read(file, 1, 2), "ex");
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

// ---- the loop is not blocked

TEST_F(FileTest, LoopRunsWhileCallWaits) {
  tree_.write("a", "text");
  File file = file_of("a", options());
  const FaultScope scope(hold(SystemCall::file_read));
  std::string order;
  const auto operation = file.read_at(0, 4, [&](const Result<Buffer>&) { order += "read"; });
  reached_.wait();
  // The thread of the pool is inside the call, and returns only after the loop has called a timer.
  EXPECT_FALSE(loop_->after(0ns, [&] {
    order += "timer ";
    go_on();
  }));
  run();
  EXPECT_EQ(order, "timer read");
}

TEST_F(FileTest, HungFileHoldsOneThread) {
  tree_.write("a", "text");
  tree_.write("b", "other");
  File hung = file_of("a", options());
  const FaultScope scope(hold(SystemCall::file_read));
  int read_of_hung = 0;
  const auto first = hung.read_at(0, 4, [&](const Result<Buffer>&) { ++read_of_hung; });
  reached_.wait();
  const auto second = hung.read_at(0, 4, [&](const Result<Buffer>&) { ++read_of_hung; });
  std::string text;
  const auto other = read_file(*loop_, tree_.at("b"), 100,
                               [&](const Result<std::string>& found) {
                                 text = found.value_or("");
                                 go_on();
                               },
                               {.pool = &pool_});
  run();
  EXPECT_EQ(text, "other");
  EXPECT_EQ(read_of_hung, 2);
}

// ---- cancelling

TEST_F(FileTest, CancelledBeforeItsTurnIsNotPerformed) {
  File file = file_of("a", options(FileAccess::read_write));
  const FaultScope scope(hold(SystemCall::file_write));
  std::string order;
  const auto note = [&](char sign) { return [&order, sign](std::error_code) { order += sign; }; };
  const auto first = file.write_at(0, bytes_of("1"), note('1'));
  reached_.wait();
  auto second = file.write_at(1, bytes_of("2"), note('2'));
  const auto third = file.write_at(2, bytes_of("3"), note('3'));
  second.cancel();
  go_on();
  run();
  EXPECT_EQ(order, "13");
  EXPECT_EQ(contents_of(tree_.at("a")), std::string("1\0003", 3));
}

TEST_F(FileTest, CancelledWhileItRunsIsWaitedForByNext) {
  File file = file_of("a", options(FileAccess::read_write));
  const FaultScope scope(hold(SystemCall::file_write));
  std::string order;
  auto first = file.write_at(0, bytes_of("1"), [&](std::error_code) { order += '1'; });
  reached_.wait();
  const auto second = file.write_at(0, bytes_of("2"), [&](std::error_code) { order += '2'; });
  first.cancel();
  EXPECT_FALSE(loop_->run(Run::no_wait));
  EXPECT_EQ(order, "");
  go_on();
  run();
  EXPECT_EQ(order, "2");
  EXPECT_EQ(contents_of(tree_.at("a")), "2");
}

TEST_F(FileTest, CancelledReadOwnsItsMemoryUntilCallEnds) {
  tree_.write("a", std::string(5'000, 'n'));
  File file = file_of("a", options());
  Buffer bytes;
  ASSERT_TRUE(bytes.append(std::string(5'000, 'o')));
  const std::byte* const place = bytes.front().data();
  const FaultScope scope(hold(SystemCall::file_read));
  bool is_called = false;
  auto operation =
      file.read_at(0, 5'000, std::move(bytes), [&](const Result<Buffer>&) { is_called = true; });
  reached_.wait();
  operation.cancel();
  // Memory of the same size is taken while the cancelled read may still write into its own.
  Buffer other;
  ASSERT_TRUE(other.append(std::string(5'000, 'p')));
  EXPECT_NE(other.front().data(), place);
  std::string text;
  const auto next =
      file.read_at(0, 4, [&](const Result<Buffer>& found) { text = text_in(*found); });
  go_on();
  run();
  EXPECT_FALSE(is_called);
  EXPECT_EQ(text, "nnnn");
  EXPECT_EQ(text_in(other), std::string(5'000, 'p'));
}

TEST_F(FileTest, DestroyedFileKeepsItsDescriptorUntilCallEnds) {
  std::optional<File> file = file_of("a", options(FileAccess::read_write));
  const int fd = file->fd();
  const FaultScope scope(hold(SystemCall::file_write));
  bool is_called = false;
  const auto running =
      file->write_at(0, bytes_of("text"), [&](std::error_code) { is_called = true; });
  const auto waiting =
      file->write_at(4, bytes_of("more"), [&](std::error_code) { is_called = true; });
  reached_.wait();
  file.reset();
  EXPECT_NE(::fcntl(fd, F_GETFD), -1);
  EXPECT_FALSE(loop_->has_work());
  go_on();
  // The next job of the pool's other thread says nothing about this one: waits for the closing.
  while (::fcntl(fd, F_GETFD) != -1) std::this_thread::yield();
  run();
  EXPECT_FALSE(is_called);
  EXPECT_EQ(contents_of(tree_.at("a")), "text");
}

TEST_F(FileTest, CancelledOpenClosesDescriptor) {
  tree_.write("a", "text");
  const std::vector<int> before = open_fds();
  {
    ThreadPool pool({.max_threads = 1});
    FileOptions how = options();
    how.pool = &pool;
    const FaultScope scope(hold(SystemCall::open));
    bool is_called = false;
    auto operation =
        File::open(*loop_, tree_.at("a"), how, [&](const Result<File>&) { is_called = true; });
    reached_.wait();
    operation.cancel();
    go_on();
    run();
    EXPECT_FALSE(is_called);
  }  // The pool's thread has ended.
  std::vector<int> after = open_fds();
  EXPECT_LE(after.size(), before.size() + 2) << "the loop's own wake-up may have been opened";
  for (const int fd : after) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    std::error_code none;
    EXPECT_NE(std::filesystem::read_symlink(link, none).string(), tree_.at("a"));
  }
}

TEST_F(FileTest, CallbackMayDestroyFileAndHandle) {
  tree_.write("a", "text");
  std::optional<File> file = file_of("a", options());
  std::optional<FileOperation> operation;
  int calls = 0;
  operation = file->read_at(0, 4, [&](const Result<Buffer>&) {
    ++calls;
    operation.reset();
    file.reset();
  });
  const auto next = file->read_at(0, 4, [&](const Result<Buffer>&) { ++calls; });
  run();
  EXPECT_EQ(calls, 1);
}

TEST_F(FileTest, CallbackMayRunLoopUntilNextHasEnded) {
  tree_.write("a", "text");
  File file = file_of("a", options());
  std::string order;
  bool is_done = false;
  const auto first = file.read_at(0, 4, [&](const Result<Buffer>&) {
    order += "( ";
    while (!is_done) EXPECT_FALSE(loop_->run(Run::once));
    order += ")";
  });
  const auto second = file.read_at(0, 4, [&](const Result<Buffer>&) {
    order += "second ";
    is_done = true;
  });
  run();
  EXPECT_EQ(order, "( second )");
}

TEST_F(FileTest, LoopMayBeDestroyedFirst) {
  tree_.write("a", "text");
  File file = file_of("a", options());
  const FaultScope scope(hold(SystemCall::file_read));
  bool is_called = false;
  const auto running = file.read_at(0, 4, [&](const Result<Buffer>&) { is_called = true; });
  const auto waiting = file.read_at(0, 4, [&](const Result<Buffer>&) { is_called = true; });
  reached_.wait();
  loop_.reset();
  go_on();
  EXPECT_FALSE(is_called);
}

// ---- deadlines

TEST_F(FileTest, DeadlineEndsOperationThatHangs) {
  tree_.write("a", "text");
  const int fd = ::open(tree_.at("a").c_str(), O_RDONLY | O_CLOEXEC);
  File file = File::adopt(*loop_, fd, {.timeout = 1ms, .pool = &pool_});
  const FaultScope scope(hold(SystemCall::file_read));
  std::vector<std::error_code> errors;
  const auto note = [&](const Result<Buffer>& bytes) {
    errors.push_back(bytes ? std::error_code() : bytes.error());
    if (errors.size() == 2) go_on();
  };
  const auto running = file.read_at(0, 4, note);
  const auto waiting = file.read_at(0, 4, note);
  run();
  EXPECT_EQ(errors, (std::vector<std::error_code>{Error::deadline, Error::deadline}));
}

TEST_F(FileTest, DeadlineIsNotReportedAfterEnd) {
  tree_.write("a", "text");
  FileOptions how = options();
  how.timeout = 1h;
  File file = file_of("a", how);
  EXPECT_EQ(read(file, 0, 4), "text");
  EXPECT_EQ(loop_->active_count(), 0);
}

// ---- the pool refuses

TEST_F(FileTest, FullPoolIsReportedFromLoop) {
  tree_.write("a", "text");
  std::latch begun(1);
  std::latch end(1);
  ThreadPool pool({.max_threads = 1, .max_queued = 0});
  const auto busy = offload(*loop_, [&] { begun.count_down(), end.wait(); }, [] {}, pool);
  begun.wait();
  std::error_code result;
  const auto operation = read_file(*loop_, tree_.at("a"), 10,
                                   [&](const Result<std::string>& text) {
                                     result = text ? std::error_code() : text.error();
                                     end.count_down();
                                   },
                                   {.pool = &pool});
  EXPECT_FALSE(result);
  run();
  EXPECT_EQ(result, Error::queue_full);
}

// ---- forks

#ifndef SPATE_TEST_THREAD_SANITIZED  // It creates no threads in the child of a fork.
TEST_F(FileTest, FileIsUsableInChildOfFork) {
  tree_.write("a", "text");
  File file = file_of("a", {.access = FileAccess::read});
  const FaultScope scope(hold(SystemCall::file_read));
  bool is_called = false;
  const auto parents = file.read_at(0, 1, [&](const Result<Buffer>&) { is_called = true; });
  reached_.wait();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::error_code early;
    const auto refused = file.read_at(0, 2, [&](const Result<Buffer>& bytes) {
      early = bytes ? std::error_code() : bytes.error();
    });
    if (loop_->after_fork()) std::_Exit(2);
    std::string text;
    const auto operation =
        file.read_at(0, 4, [&](const Result<Buffer>& bytes) { text = text_in(*bytes); });
    if (loop_->run() || loop_->has_work()) std::_Exit(3);
    std::_Exit(text != "text" ? 4 : is_called ? 5 : early != Error::loop_forked ? 6 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  go_on();
  run();
  EXPECT_TRUE(is_called);
}
#endif

}  // namespace
}  // namespace spate::testing
