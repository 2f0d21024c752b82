// Awaitables of a File, and of the functions for paths.
//
//   Result<File> file = co_await coro::open_file("data.bin");
//   if (!file) co_return file.error();
//   const Result<Buffer> bytes = co_await coro::read_at(*file, 0, 4096);
//   const Result<void> written = co_await coro::write_file("copy.bin", *std::move(bytes));
//
// As the functions of file.h. A cancelled wait cancels the operation. The File must live until the
// co_await has ended. For a time limit, use with_deadline(), or the timeout of the options.
// Threads: the loop's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "spate/coro/callback_awaiter.h"
#include "spate/file.h"

namespace spate::coro {

// Converts a reply of type Result<void> to a callback that takes a std::error_code.
template <class Reply>
OnFileDone file_done(Reply reply) {
  return [reply](std::error_code error) {
    reply(error ? Result<void>(std::unexpected(error)) : Result<void>());
  };
}

// co_await: returns the File.
inline auto open_file(std::string path, FileOptions options = {}) {
  return CallbackAwaiter<Result<File>>::of(
      [path = std::move(path), options](Loop& loop, auto reply) mutable {
        return File::open(loop, std::move(path), options, reply);
      });
}

// co_await: returns the bytes, fewer than `count` only at the end of the file.
inline auto read_at(File& file, std::uint64_t offset, std::size_t count) {
  return CallbackAwaiter<Result<Buffer>>::of(
      [&file, offset, count](Loop&, auto reply) { return file.read_at(offset, count, reply); });
}

// As above, into the memory of `reused`: the Buffer of the last read.
inline auto read_at(File& file, std::uint64_t offset, std::size_t count, Buffer reused) {
  return CallbackAwaiter<Result<Buffer>>::of(
      [&file, offset, count, reused = std::move(reused)](Loop&, auto reply) mutable {
        return file.read_at(offset, count, std::move(reused), reply);
      });
}

// co_await: returns when all bytes are written.
inline auto write_at(File& file, std::uint64_t offset, Buffer bytes) {
  return CallbackAwaiter<Result<void>>::of(
      [&file, offset, bytes = std::move(bytes)](Loop&, auto reply) mutable {
        return file.write_at(offset, std::move(bytes), file_done(reply));
      });
}
// As above. The bytes are copied when the wait begins.
inline auto write_at(File& file, std::uint64_t offset, Bytes bytes) {
  return CallbackAwaiter<Result<void>>::of([&file, offset, bytes](Loop&, auto reply) {
    return file.write_at(offset, bytes, file_done(reply));
  });
}

// co_await: returns when all that was written is on the disk.
inline auto sync(File& file) {
  return CallbackAwaiter<Result<void>>::of(
      [&file](Loop&, auto reply) { return file.sync(file_done(reply)); });
}

// co_await: returns the status of the file.
inline auto stat(File& file) {
  return CallbackAwaiter<Result<FileStatus>>::of(
      [&file](Loop&, auto reply) { return file.stat(reply); });
}

// co_await: returns when the file has the new size.
inline auto resize(File& file, std::uint64_t size) {
  return CallbackAwaiter<Result<void>>::of(
      [&file, size](Loop&, auto reply) { return file.resize(size, file_done(reply)); });
}

// co_await: returns when the descriptor is closed.
inline auto close(File& file) {
  return CallbackAwaiter<Result<void>>::of(
      [&file](Loop&, auto reply) { return file.close(file_done(reply)); });
}

// co_await: returns the whole text.
inline auto read_file(std::string path, std::size_t limit, PathOptions options = {}) {
  return CallbackAwaiter<Result<std::string>>::of(
      [path = std::move(path), limit, options](Loop& loop, auto reply) mutable {
        return spate::read_file(loop, std::move(path), limit, reply, options);
      });
}

// co_await: returns when the file is replaced.
inline auto write_file(std::string path, Buffer bytes, WriteFileOptions options = {}) {
  return CallbackAwaiter<Result<void>>::of([path = std::move(path), bytes = std::move(bytes),
                                            options](Loop& loop, auto reply) mutable {
    return spate::write_file(loop, std::move(path), std::move(bytes), file_done(reply), options);
  });
}
// As above. The bytes are copied when the wait begins.
inline auto write_file(std::string path, Bytes bytes, WriteFileOptions options = {}) {
  return CallbackAwaiter<Result<void>>::of(
      [path = std::move(path), bytes, options](Loop& loop, auto reply) mutable {
        return spate::write_file(loop, std::move(path), bytes, file_done(reply), options);
      });
}

// co_await: returns the status of the file.
inline auto stat_file(std::string path, PathOptions options = {}) {
  return CallbackAwaiter<Result<FileStatus>>::of(
      [path = std::move(path), options](Loop& loop, auto reply) mutable {
        return spate::stat_file(loop, std::move(path), reply, options);
      });
}

// co_await: returns when the file is renamed.
inline auto rename_file(std::string from, std::string to, PathOptions options = {}) {
  return CallbackAwaiter<Result<void>>::of(
      [from = std::move(from), to = std::move(to), options](Loop& loop, auto reply) mutable {
        return spate::rename_file(loop, std::move(from), std::move(to), file_done(reply), options);
      });
}

// co_await: returns when the file is removed.
inline auto remove_file(std::string path, PathOptions options = {}) {
  return CallbackAwaiter<Result<void>>::of(
      [path = std::move(path), options](Loop& loop, auto reply) mutable {
        return spate::remove_file(loop, std::move(path), file_done(reply), options);
      });
}

}  // namespace spate::coro
