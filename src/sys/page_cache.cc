#include "sys/page_cache.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <cerrno>

#include "sys/descriptor.h"
#include "sys/directory.h"

namespace spate::sys {

namespace {

constexpr std::size_t kPage = 4096;
// The kernel reads ahead, and usually discards, this much at once.
constexpr std::size_t kSample = 128 * 1024;

// Reads a byte in each `step` bytes, and the last one.
template <class Read>
long touch(std::size_t size, std::int64_t offset, std::size_t step, Read read) {
  for (std::size_t at = 0; at < size; at += step) {
    const long count = read(offset + static_cast<std::int64_t>(at));
    if (count <= 0) return count < 0 ? count : -ENODATA;
  }
  const long count = read(offset + static_cast<std::int64_t>(size) - 1);
  return count > 0 ? 0 : count < 0 ? count : -ENODATA;
}

// Returns -EOPNOTSUPP if the file system does not support it. tmpfs does not, and needs no disk.
#ifdef RWF_NOWAIT
long read_cached(int fd, void* data, std::size_t size, std::int64_t offset) {
  if (const int error = injected(SystemCall::read_at_once)) return -error;
  const iovec piece{.iov_base = data, .iov_len = shortened(SystemCall::read_at_once, size)};
  return result_of(::preadv2(fd, &piece, 1, offset, RWF_NOWAIT));
}
#else
long read_cached(int, void*, std::size_t, std::int64_t) { return -EOPNOTSUPP; }
#endif

}  // namespace

long read_at_once(int fd, void* data, std::size_t size, std::int64_t offset) {
  const long count = read_cached(fd, data, size, offset);
  if (count != -EOPNOTSUPP) return count;
  return medium_of(fd) == Medium::memory ? read_at(fd, data, size, offset) : -EAGAIN;
}

long find_in_memory(int fd, std::size_t size, std::int64_t offset) {
  const long result = touch(size, offset, kSample, [fd](std::int64_t at) {
    char byte;
    return read_cached(fd, &byte, 1, at);
  });
  if (result != -EOPNOTSUPP) return result;
  return medium_of(fd) == Medium::memory ? 0 : -EAGAIN;
}

// The advice makes the kernel read all of it with few requests.
long bring_into_memory(int fd, std::size_t size, std::int64_t offset) {
#ifdef POSIX_FADV_WILLNEED
  ::posix_fadvise(fd, offset, static_cast<off_t>(size), POSIX_FADV_WILLNEED);
#endif
  return touch(size, offset, kPage, [fd](std::int64_t at) {
    char byte;
    long count = 0;
    do {
      count = read_at(fd, &byte, 1, at);
    } while (count == -EINTR);
    return count;
  });
}

}  // namespace spate::sys
