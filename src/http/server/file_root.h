// FileRoot: opens files beneath a directory, and never outside of it.
//
// Threads: find() may be called on several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "spate/error.h"
#include "sys/directory.h"

namespace spate::http {

using sys::Waiting;

struct OpenFile {
  sys::Descriptor file;
  sys::FileStatus status;
};

class FileRoot {
 public:
  static Result<FileRoot> open(const std::string& directory);

  // `path` must have no dot segments and no leading slash; empty is the root. With Waiting::never,
  // EAGAIN means that the call might have to wait.
  Result<OpenFile> find(const std::string& path, Waiting waiting) const;

  // Returns the bytes that were read into `room`, as sys::read_at_once(). Pass a file of find().
  long read(int file, std::span<std::byte> room, std::int64_t offset, Waiting waiting) const;

 private:
  // Features of the kernel and of the file system.
  struct Abilities {
    bool has_openat2;
    bool finds_at_once;  // Waiting::never is supported.
  };

  FileRoot(sys::Descriptor root, Abilities abilities)
      : root_(std::move(root)), abilities_(abilities) {}
  long open_path(const std::string& path, Waiting waiting) const;
  long walk(const std::string& path) const;

  sys::Descriptor root_;
  Abilities abilities_;
};

}  // namespace spate::http
