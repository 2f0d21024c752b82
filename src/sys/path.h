// Paths and their status.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <string>

#include "sys/descriptor.h"

namespace spate::sys {

// Whether a symbolic link is followed.
enum class Follow : bool { no, yes };

// Whether a call may wait for a disk.
enum class Waiting : std::uint8_t { allowed, never };

// Where the files of a file system are.
enum class Medium : std::uint8_t {
  memory,
  disk,   // Opening a file whose name is cached, and its status, need no I/O.
  other,  // Unknown, or each call may be a request to a server.
};

// The file may be of any kind: a pipe without a writer must not block, and a terminal must not
// become the controlling one.
inline constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Return the times of a file: of its last reading, of its last writing, and of the last change of
// its inode.
#ifdef __APPLE__
inline const timespec& accessed(const struct stat& status) { return status.st_atimespec; }
inline const timespec& modified(const struct stat& status) { return status.st_mtimespec; }
inline const timespec& changed(const struct stat& status) { return status.st_ctimespec; }
#else
inline const timespec& accessed(const struct stat& status) { return status.st_atim; }
inline const timespec& modified(const struct stat& status) { return status.st_mtim; }
inline const timespec& changed(const struct stat& status) { return status.st_ctim; }
#endif

// Makes a path absolute. Returns 0 or a negated errno.
inline long make_absolute(std::string& path) {
  if (path.starts_with('/')) return 0;
  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof(directory)) == nullptr) return -errno;
  path.insert(0, std::string(directory) + '/');
  return 0;
}

inline long look_at(const char* path, Follow follow, struct stat& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  return result_of(
      ::fstatat(AT_FDCWD, path, &status, follow == Follow::no ? AT_SYMLINK_NOFOLLOW : 0));
}

inline bool is_link(const char* path) {
  struct stat status{};
  return look_at(path, Follow::no, status) >= 0 && S_ISLNK(status.st_mode);
}

}  // namespace spate::sys
