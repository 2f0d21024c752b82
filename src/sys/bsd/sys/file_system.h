// Depends on the file system: opening beneath a directory, and where files are.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/param.h>
#ifdef __NetBSD__
#include <sys/statvfs.h>
#endif

#include <cerrno>

#include "sys/descriptor.h"
#include "sys/path.h"

namespace spate::sys {

// Opens a directory on the way to a file.
#ifdef O_SEARCH
inline constexpr int kToPass = O_SEARCH | O_DIRECTORY | O_CLOEXEC;
#else
inline constexpr int kToPass = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

// Returns -ENOSYS: the caller opens one directory after the other.
inline long open_beneath(int, const char*, Waiting) { return -ENOSYS; }

#ifdef __NetBSD__
using FileSystem = struct statvfs;
inline int find_file_system(int fd, FileSystem& found) { return ::fstatvfs(fd, &found); }
inline int find_file_system(const char* path, FileSystem& found) { return ::statvfs(path, &found); }
inline bool is_local(const FileSystem& found) { return (found.f_flag & ST_LOCAL) != 0; }
#else
using FileSystem = struct statfs;
inline int find_file_system(int fd, FileSystem& found) { return ::fstatfs(fd, &found); }
inline int find_file_system(const char* path, FileSystem& found) { return ::statfs(path, &found); }
inline bool is_local(const FileSystem& found) { return (found.f_flags & MNT_LOCAL) != 0; }
#endif

// Returns the medium of the file system of an open file or directory.
inline Medium medium_of(int fd) {
  FileSystem found{};
  if (find_file_system(fd, found) != 0) return Medium::other;
  return is_local(found) ? Medium::disk : Medium::other;
}

// Returns 1 if the path is on a network file system; 0 if not; a negated errno if the path does not
// exist.
inline long is_remote(const char* path) {
  FileSystem found{};
  if (find_file_system(path, found) < 0) return -errno;
  return is_local(found) ? 0 : 1;
}

}  // namespace spate::sys
