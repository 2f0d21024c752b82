// Files beneath a directory, and the names in it.
#pragma once

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// For `path`s to be opened beneath it; not to be read.
inline long open_root(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return result_of(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// What is opened may be anything: a pipe without a writer does not block, a terminal does not
// become ours.
inline constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// To be read. Neither `path` nor a link on its way leaves `root` (-EXDEV). Since Linux 5.6, else
// -ENOSYS; -EAGAIN when somebody moves directories meanwhile.
inline long open_beneath(int root, const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  open_how how{};
  how.flags = kToRead;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return result_of(::syscall(SYS_openat2, root, path, &how, sizeof(how)));
}

// One name in a directory, which is not a link: a directory on the way, or the file to be read.
enum class Step : std::uint8_t { through, to };
inline long open_step(int directory, const char* name, Step step) {
  if (const int error = injected(SystemCall::open)) return -error;
  const int flags = step == Step::to ? kToRead : O_PATH | O_DIRECTORY | O_CLOEXEC;
  return result_of(::openat(directory, name, flags | O_NOFOLLOW));
}

struct FileStatus {
  enum class Kind : std::uint8_t { regular, directory, other };
  Kind kind = Kind::other;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t seconds = 0;  // When it was written.
  std::int64_t nanoseconds = 0;
};

inline FileStatus::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileStatus::Kind::regular;
  return S_ISDIR(mode) ? FileStatus::Kind::directory : FileStatus::Kind::other;
}

inline FileStatus status_from(const struct stat& status) {
  return {.kind = kind_of(status.st_mode),
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

inline long status_of(int fd, FileStatus& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  struct stat found{};
  const long result = result_of(::fstat(fd, &found));
  status = status_from(found);
  return result;
}

// Of a name in a directory; of a link itself.
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
  // Takes `fd` over.
  explicit Directory(Descriptor fd) : stream_(::fdopendir(fd.get())) {
    if (stream_ != nullptr) fd.release();
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    if (stream_ != nullptr) ::closedir(stream_);
  }

  bool is_open() const { return stream_ != nullptr; }
  int fd() const { return ::dirfd(stream_); }
  // nullptr at the end. Valid until the next call.
  const char* next() {
    const dirent* entry = ::readdir(stream_);
    return entry == nullptr ? nullptr : entry->d_name;
  }

 private:
  DIR* stream_;
};

}  // namespace spate::sys
