// Opens files beneath a directory, and lists the names in it.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstdint>

#include "sys/descriptor.h"
#include "sys/file_system.h"
#include "sys/path.h"

namespace spate::sys {

// Opens a root for open_beneath(); it cannot be read.
inline long open_root(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return opened(::open(path, kToPass));
}

// Opens a directory to list it.
inline long open_to_list(const char* path, bool follow) {
  if (const int error = injected(SystemCall::open)) return -error;
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  return opened(::openat(AT_FDCWD, path, flags));
}

// Opens one name in a directory, without following a link: a directory on the way, or the file for
// reading.
enum class Step : std::uint8_t { through, to };
inline long open_step(int directory, const char* name, Step step) {
  if (const int error = injected(SystemCall::open)) return -error;
  const int flags = step == Step::to ? kToRead : kToPass;
  return opened(::openat(directory, name, flags | O_NOFOLLOW));
}

struct FileStatus {
  enum class Kind : std::uint8_t { regular, directory, other };
  Kind kind = Kind::other;
  std::uint64_t size = 0;
  std::int64_t seconds = 0;  // The modification time.
  std::int64_t nanoseconds = 0;
  std::int64_t changed_seconds = 0;  // The time of the last change of the inode.
  std::int64_t changed_nanoseconds = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileStatus&) const = default;
};

inline FileStatus::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileStatus::Kind::regular;
  return S_ISDIR(mode) ? FileStatus::Kind::directory : FileStatus::Kind::other;
}

inline FileStatus status_from(const struct stat& status) {
  return {.kind = kind_of(status.st_mode),
          .size = static_cast<std::uint64_t>(status.st_size),
          .seconds = modified(status).tv_sec,
          .nanoseconds = modified(status).tv_nsec,
          .changed_seconds = changed(status).tv_sec,
          .changed_nanoseconds = changed(status).tv_nsec,
          .device = static_cast<std::uint64_t>(status.st_dev),
          .inode = static_cast<std::uint64_t>(status.st_ino)};
}

inline long status_of(int fd, FileStatus& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  struct stat found{};
  const long result = result_of(::fstat(fd, &found));
  status = status_from(found);
  return result;
}

// Reads the status of a name in a directory; of a link itself.
inline long status_at(int directory, const char* name, FileStatus& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  struct stat found{};
  const long result = result_of(::fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW));
  status = status_from(found);
  return result;
}

// The names in a directory, in no order.
class Directory {
 public:
  // Takes ownership of `fd`.
  explicit Directory(Descriptor fd) : stream_(::fdopendir(fd.get())) {
    if (stream_ != nullptr) fd.release();
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    if (stream_ != nullptr) ::closedir(stream_);
  }

  bool is_open() const { return stream_ != nullptr; }
  int fd() const { return dirfd(stream_); }
  // Returns nullptr at the end. Valid until the next call.
  const char* next() {
    entry_ = ::readdir(stream_);
    return entry_ == nullptr ? nullptr : entry_->d_name;
  }
  // Returns whether the name that next() returned is that of a directory, and not of a link to one.
  bool is_at_directory() const {
    if (entry_->d_type != DT_UNKNOWN) return entry_->d_type == DT_DIR;
    FileStatus status;
    return status_at(fd(), entry_->d_name, status) >= 0 &&
           status.kind == FileStatus::Kind::directory;
  }

 private:
  DIR* stream_;
  const dirent* entry_ = nullptr;
};

}  // namespace spate::sys
