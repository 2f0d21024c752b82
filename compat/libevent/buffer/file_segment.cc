#include "compat/libevent/buffer/file_segment.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <new>

#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/threads.h"

using namespace spate::libevent;

namespace {

// Returns the length up to the end of the file; -1 if it has no size, or the range begins beyond
// it.
off_t length_from(int fd, off_t offset) {
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size < offset) return -1;
  return status.st_size - offset;
}

bool is_range(off_t offset, off_t length) {
  return offset >= 0 && length >= 0 && length <= INT64_MAX - offset;
}

}  // namespace

evbuffer_file_segment::evbuffer_file_segment(int fd, off_t offset, off_t length, unsigned flags)
    : fd_(fd), flags_(flags), offset_(offset), length_(length) {}

evbuffer_file_segment* evbuffer_file_segment::create(int fd, off_t offset, off_t length,
                                                     unsigned flags) {
  if (length == -1 && offset >= 0) length = length_from(fd, offset);
  if (!is_range(offset, length)) return nullptr;
  void* memory = allocate(sizeof(evbuffer_file_segment));
  if (memory == nullptr) return nullptr;
  auto* segment = new (memory) evbuffer_file_segment(fd, offset, length, flags);
  if ((flags & EVBUF_FS_DISABLE_LOCKING) == 0) segment->lock_ = make_lock();
  if ((flags & EVBUF_FS_DISABLE_SENDFILE) == 0 || segment->load()) return segment;
  segment->flags_ &= ~unsigned{EVBUF_FS_CLOSE_ON_FREE};  // The caller keeps the descriptor.
  segment->give_up();
  return nullptr;
}

evbuffer_file_segment::~evbuffer_file_segment() {
  if (mapped_ != nullptr) {
    munmap(mapped_, mapped_size_);
  } else {
    release(contents_);
  }
  if ((flags_ & EVBUF_FS_CLOSE_ON_FREE) != 0) close(fd_);
  if (cleanup_ != nullptr) cleanup_(this, static_cast<int>(flags_), argument_);
  free_lock(lock_);
}

void evbuffer_file_segment::give_up() {
  if (owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  this->~evbuffer_file_segment();
  release(this);
}

bool evbuffer_file_segment::load() {
  const Holding holding(lock_);
  if (contents_ != nullptr) return true;
  return (flags_ & EVBUF_FS_DISABLE_MMAP) == 0 ? map() : read_all();
}

// Not beyond the end of the file: reading the memory there would raise SIGBUS.
bool evbuffer_file_segment::map() {
  const off_t skipped = offset_ % sysconf(_SC_PAGESIZE);
  const auto size = static_cast<std::size_t>(length_ + skipped);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_, offset_ - skipped);
  if (memory == MAP_FAILED) {
    warn("evbuffer_file_segment: mmap of descriptor %d", fd_);
    return false;
  }
  if (length_from(fd_, offset_) < length_) {
    munmap(memory, size);
    warnx("evbuffer_file_segment: the file of descriptor %d is shorter", fd_);
    return false;
  }
  mapped_ = memory;
  mapped_size_ = size;
  contents_ = static_cast<unsigned char*>(memory) + skipped;
  return true;
}

bool evbuffer_file_segment::read_all() {
  const auto size = static_cast<std::size_t>(length_);
  if (size == 0) return true;
  auto* memory = static_cast<unsigned char*>(allocate(size));
  std::size_t done = 0;
  while (memory != nullptr && done < size) {
    const ssize_t count =
        pread(fd_, memory + done, size - done, offset_ + static_cast<off_t>(done));
    if (count <= 0 && (count == 0 || errno != EINTR)) break;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (done < size) {
    release(memory);
    return false;
  }
  contents_ = memory;
  return true;
}

// ---- the exported functions

evbuffer_file_segment* evbuffer_file_segment_new(int fd, ev_off_t offset, ev_off_t length,
                                                 unsigned flags) {
  return evbuffer_file_segment::create(fd, offset, length, flags);
}

void evbuffer_file_segment_free(evbuffer_file_segment* segment) { segment->give_up(); }

void evbuffer_file_segment_add_cleanup_cb(evbuffer_file_segment* segment,
                                          evbuffer_file_segment_cleanup_cb cleanup,
                                          void* argument) {
  segment->set_cleanup(cleanup, argument);
}
