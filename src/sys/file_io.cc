#include "sys/file_io.h"

#include <sys/uio.h>

#include <cstdio>

namespace spate::sys {

namespace {

template <class Call>
long repeated(Call call) {
  long result = 0;
  do {
    result = call();
  } while (result == -EINTR);
  return result;
}

// A World makes preadv() and pwritev() fail, and leaves pread() alone (src/sim/syscalls/calls.txt).
long read_part(int fd, void* data, std::size_t size, std::int64_t offset) {
  if (const int error = injected(SystemCall::file_read)) return -error;
  const iovec piece{.iov_base = data, .iov_len = shortened(SystemCall::file_read, size)};
  return result_of(::preadv(fd, &piece, 1, offset));
}

long write_part(int fd, const void* data, std::size_t size, std::int64_t offset) {
  if (const int error = injected(SystemCall::file_write)) return -error;
  const iovec piece{.iov_base = const_cast<void*>(data),
                    .iov_len = shortened(SystemCall::file_write, size)};
  return result_of(::pwritev(fd, &piece, 1, offset));
}

}  // namespace

long open_file(const char* path, const OpenMode& mode) {
  int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  flags |= !mode.write ? O_RDONLY : mode.read ? O_RDWR : O_WRONLY;
  flags |= mode.create ? O_CREAT : 0;
  flags |= mode.create && mode.exclusive ? O_EXCL : 0;
  flags |= mode.truncate ? O_TRUNC : 0;
  flags |= mode.append ? O_APPEND : 0;
  flags |= mode.follow ? 0 : O_NOFOLLOW;
  return repeated([&]() -> long {
    if (const int error = injected(SystemCall::open)) return -error;
    return opened(::openat(AT_FDCWD, path, flags, static_cast<mode_t>(mode.permissions)));
  });
}

long open_directory(const char* path) {
  return repeated([&]() -> long {
    if (const int error = injected(SystemCall::open)) return -error;
    return opened(::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  });
}

long read_all_at(int fd, void* data, std::size_t size, std::int64_t offset) {
  std::size_t done = 0;
  while (done < size) {
    const long count = repeated([&] {
      return read_part(fd, static_cast<char*>(data) + done, size - done,
                       offset + static_cast<std::int64_t>(done));
    });
    if (count < 0) return count;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<long>(done);
}

long write_all_at(int fd, const void* data, std::size_t size, std::int64_t offset) {
  std::size_t done = 0;
  while (done < size) {
    const long count = repeated([&] {
      return write_part(fd, static_cast<const char*>(data) + done, size - done,
                        offset + static_cast<std::int64_t>(done));
    });
    if (count <= 0) return count < 0 ? count : -EIO;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

long sync_file(int fd) {
  return repeated([&]() -> long {
    if (const int error = injected(SystemCall::sync)) return -error;
    return result_of(::fsync(fd));
  });
}

long resize_file(int fd, std::int64_t size) {
  return repeated([&]() -> long {
    if (const int error = injected(SystemCall::truncate)) return -error;
    return result_of(::ftruncate(fd, size));
  });
}

// Linux closes the descriptor even if close() is interrupted.
long close_file(Descriptor& file) {
  const long result = result_of(::close(file.release()));
  return result == -EINTR ? 0 : result;
}

long rename_file(const char* from, const char* to) {
  if (const int error = injected(SystemCall::rename)) return -error;
  return result_of(::rename(from, to));
}

long remove_file(const char* path) {
  if (const int error = injected(SystemCall::unlink)) return -error;
  return result_of(::unlinkat(AT_FDCWD, path, 0));
}

long status_of_file(int fd, struct stat& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  return result_of(::fstat(fd, &status));
}

}  // namespace spate::sys
