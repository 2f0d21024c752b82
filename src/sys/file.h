// Files by their names: small ones, read as a whole; those beneath a directory; directories.
#pragma once

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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

// ---- beneath a directory

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

long status_of(int fd, FileStatus& status);
// Of a name in a directory; of a link itself.
long status_at(int directory, const char* name, FileStatus& status);

// The names in a directory, in no order.
class Directory {
 public:
  // Takes `fd` over.
  explicit Directory(Descriptor fd);
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory();

  bool is_open() const { return stream_ != nullptr; }
  int fd() const { return ::dirfd(stream_); }
  // nullptr at the end. Valid until the next call.
  const char* next();

 private:
  DIR* stream_;
};

}  // namespace spate::sys
