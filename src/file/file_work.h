// The parts of file operations that run on a thread of the pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/file.h"
#include "spate/net/buffer.h"
#include "sys/descriptor.h"

namespace spate {

// Set on the loop's thread when an operation is cancelled, and read on the pool's.
using Cancelled = std::atomic<bool>;

}  // namespace spate

namespace spate::file_work {

Result<sys::Descriptor> open(const std::string& path, const FileOptions& options);
// Appends to `bytes`, which is empty, and returns it.
Result<Buffer> read(int fd, std::uint64_t offset, std::size_t count, Buffer bytes,
                    const Cancelled& is_cancelled);
std::error_code write(int fd, std::uint64_t offset, const Buffer& bytes,
                      const Cancelled& is_cancelled);
Result<FileStatus> status(int fd);
Result<FileStatus> status(const std::string& path);

Result<std::string> read_whole(const std::string& path, std::size_t limit,
                               const Cancelled& is_cancelled);

std::error_code rename(const std::string& from, const std::string& to);
std::error_code remove(const std::string& path);
// Writes a temporary file, and renames it at the end. Destroying it before finish() has succeeded
// removes the temporary file.
class Replacement {
 public:
  Replacement(std::string path, const WriteFileOptions& options)
      : path_(std::move(path)), options_(options) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement();

  // Appends the bytes; the first call creates the file. After an error only the destructor may be
  // called.
  std::error_code write(const Buffer& bytes, const Cancelled& is_cancelled);
  std::error_code finish(const Cancelled& is_cancelled);

 private:
  std::error_code create();

  const std::string path_;
  const WriteFileOptions options_;
  std::string temporary_;  // Empty while there is no temporary file.
  sys::Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace spate::file_work
