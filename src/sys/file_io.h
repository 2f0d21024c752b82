// Calls that may wait for a disk: for threads of a pool.
//
// Each call that a signal interrupted is repeated.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

struct OpenMode {
  bool read = true;
  bool write = false;
  bool create = false;
  bool exclusive = false;  // With `create`: fails with -EEXIST if the file exists.
  bool truncate = false;
  bool append = false;
  bool follow = true;  // Follows a symbolic link at the end of the path.
  unsigned permissions = 0666;
};

// Opens a file without waiting for the other end of a pipe.
long open_file(const char* path, const OpenMode& mode);
// Opens a directory for sync_file().
long open_directory(const char* path);

// Reads until `size` bytes were read, or until the end of the file. Returns the number of bytes.
long read_all_at(int fd, void* data, std::size_t size, std::int64_t offset);
// Writes all bytes. Returns 0, or a negated errno after which a part may have been written.
long write_all_at(int fd, const void* data, std::size_t size, std::int64_t offset);

long sync_file(int fd);
long resize_file(int fd, std::int64_t size);
// Closes the descriptor, and returns the error of an earlier write, if the file system reports it
// only now.
long close_file(Descriptor& file);

long rename_file(const char* from, const char* to);
long remove_file(const char* path);
long status_of_file(int fd, struct stat& status);

}  // namespace spate::sys
