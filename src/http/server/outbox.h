// Outbox: the send queue of one body: bytes, and pieces of files in between. Files are read when
// they reach the front, a piece at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "offload/file_source.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

class Outbox {
 public:
  // The sum over several queues, which keep it up to date.
  struct Total {
    std::uint64_t in_memory = 0;  // Bytes.
    std::size_t files = 0;
  };

  explicit Outbox(Total& total) : total_(total) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox() { clear(); }

  // Returns the number of bytes, including those of files.
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Append at the end. They return false when memory runs out; nothing is appended then, and the
  // file stays the caller's.
  bool append(Bytes bytes);
  void append(Buffer&& bytes);
  bool append_file(int file, std::uint64_t offset, std::uint64_t size, ThreadPool& pool);

  // Brings up to `most` bytes at the front into memory; fewer only at the end, or before the end of
  // a piece of a file. Returns their number, or a file's error (core/result.h); -ENODATA if the
  // file is too short. With -EAGAIN, a thread reads the file, and `done` is called from the loop.
  long prepare(std::size_t most, Loop& loop, Job done);
  // Copies or moves `count` bytes that were prepared. The latter returns false when memory runs
  // out.
  void take(std::span<std::byte> target);
  bool take(std::size_t count, Buffer& target);
  void clear();

 private:
  struct FilePiece {
    std::unique_ptr<FileSource> file;
    std::uint64_t offset;
    std::uint64_t left;
    Buffer behind;
    std::unique_ptr<FilePiece> next;
  };

  Buffer& back() { return last_ == nullptr ? front_ : last_->behind; }
  void drop_file();
  long read_file(std::size_t most, Loop& loop, Job done);
  void grow(std::uint64_t bytes) {
    in_memory_ += bytes;
    total_.in_memory += bytes;
  }
  void shrink(std::uint64_t bytes) {
    size_ -= bytes;
    in_memory_ -= bytes;
    total_.in_memory -= bytes;
  }

  Total& total_;
  Buffer front_;
  std::unique_ptr<FilePiece> first_;
  FilePiece* last_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t in_memory_ = 0;
};

}  // namespace spate::http
