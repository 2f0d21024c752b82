#include "sys/file.h"

#include <sys/file.h>

#include <utility>

#include "sys/path.h"

namespace spate::sys {

namespace {

long open_file(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return opened(::open(path, O_RDONLY | O_CLOEXEC));
}

// Opens or creates a file, without following a link.
long open_lock(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return opened(::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

// Both locks belong to the open file, not to the process.
int try_to_lock(int file) {
#ifdef F_OFD_SETLK
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &whole);
#else
  return ::flock(file, LOCK_EX | LOCK_NB);
#endif
}

}  // namespace

long open_to_append(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return opened(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
}

long read_file(const char* path, std::string& text) {
  const Descriptor file(open_file(path));
  if (!file.is_open()) return file.get();
  char piece[4096];
  long size = 0;
  while ((size = read(file.get(), piece, sizeof(piece))) > 0)
    text.append(piece, static_cast<std::size_t>(size));
  return size;
}

FileStamp stamp_of(const char* path) {
  struct stat status{};
  if (injected(SystemCall::lstat) != 0 || ::stat(path, &status) < 0) return {};
  return {.device = static_cast<std::uint64_t>(status.st_dev),
          .inode = status.st_ino,
          .size = status.st_size,
          .seconds = modified(status).tv_sec,
          .nanoseconds = modified(status).tv_nsec};
}

// The opened file may have been unlocked and removed meanwhile, and its name may belong to another
// file: checks after locking.
long LockFile::lock(std::string path) {
  for (;;) {
    Descriptor file(open_lock(path.c_str()));
    if (!file.is_open()) return file.get();
    struct stat status{};
    if (try_to_lock(file.get()) < 0 || ::fstat(file.get(), &status) < 0) return result_of(-1);
    if (status.st_nlink == 0) continue;
    path_ = std::move(path);
    file_ = std::move(file);
    return 0;
  }
}

LockFile::~LockFile() {
  if (file_.is_open()) ::unlink(path_.c_str());
}

}  // namespace spate::sys
