// Reads small files completely, such as configuration files.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "spate/export.h"
#include "sys/descriptor.h"

namespace spate::sys {

// Reads the whole file. On an error, `text` has the part that was read before.
long read_file(const char* path, std::string& text);

// Values that change when a file is written or replaced; all zero for a missing file.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
};

FileStamp stamp_of(const char* path);

// Opens a file, which is created if it does not exist, for writing at its end.
SPATE_EXPORT long open_to_append(const char* path);

// A file lock held by at most one process, and one thread of it. The file exists while it is
// locked; one left by a killed process is locked again.
class LockFile {
 public:
  LockFile() = default;
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile();

  // Does not wait: -EAGAIN if it is locked. Called once.
  long lock(std::string path);

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace spate::sys
