// FileSource: a file whose bytes are sent by a loop, which does not wait for a disk. It asks the
// kernel for bytes in memory first, and lets a thread of the pool read others.
//
// Threads: the loop's thread only. Destroying it while a thread reads closes the file when the
// thread has finished. In the child of a fork, which has no such thread, `done` is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "spate/export.h"
#include "spate/hooks.h"
#include "spate/offload.h"
#include "sys/descriptor.h"

namespace spate {

class SPATE_EXPORT FileSource {
 public:
  // Takes ownership of `file`, unless memory runs out (nullptr).
  static std::unique_ptr<FileSource> make(int file, ThreadPool& pool);
  FileSource(std::shared_ptr<const sys::Descriptor> file, ThreadPool& pool)
      : file_(std::move(file)), pool_(pool) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  int fd() const { return file_->get(); }
  // Returns whether a thread is reading.
  bool is_waiting() const { return is_waiting_; }

  // Reads bytes at `offset`. Returns their number, 0 at the file's end, or an error
  // (core/result.h). With -EAGAIN a thread reads them into the page cache, and `done` is called
  // from the loop: the next call with this offset does not ask again. `done` may destroy this.
  long read(Loop& loop, std::span<std::byte> room, std::int64_t offset, Job done);
  // As read(), without copying: returns how many of `size` bytes another call may read.
  long prepare(Loop& loop, std::size_t size, std::int64_t offset, Job done);
 private:
  // Returns the result of the thread, and forgets it.
  long take_loaded();
  long load(Loop& loop, std::size_t size, std::int64_t offset, Job done);
  void on_loaded(long loaded);
  // The parent has the thread: the next call asks again.
  void on_fork() { on_loaded(0); }

  const std::shared_ptr<const sys::Descriptor> file_;
  ThreadPool& pool_;
  Offloading job_;
  std::optional<Fork> forked_;  // While a thread reads.
  Job done_;
  bool is_waiting_ = false;
  long loaded_ = 0;  // The number of bytes that the thread has read, or its negated errno.
};

}  // namespace spate
