// Small files, read as a whole: configuration.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "sys/descriptor.h"

namespace spate::sys {

// Reads all of it. On an error, `text` holds what was read before.
long read_file(const char* path, std::string& text);

// What changes when a file is written, or replaced by another; all zero if there is none.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
};

FileStamp stamp_of(const char* path);

}  // namespace spate::sys
