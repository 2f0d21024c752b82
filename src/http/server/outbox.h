// Outbox: what waits to be sent of one body: bytes, and pieces of files in their place between
// them. Files are read when their turn comes, a piece at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

class Outbox {
 public:
  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox() { clear(); }

  // Bytes, those of files included.
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // These return false when memory runs out; nothing is appended then, and the file is the
  // caller's.
  bool append(Bytes bytes);
  void append(Buffer&& bytes);
  bool append_file(int file, std::uint64_t offset, std::uint64_t size);

  // Has up to `most` bytes at the front, in memory; fewer only if there are no more, or behind a
  // piece of a file. Negative: a file's error, as -errno; -ENODATA if it is too short.
  long prepare(std::size_t most);
  // Copies as many of what was prepared, or moves them: false when memory runs out.
  void take(std::span<std::byte> target);
  bool take(std::size_t count, Buffer& target);
  void clear();

 private:
  struct FilePiece {
    int file;
    std::uint64_t offset;
    std::uint64_t left;
    Buffer behind;
    std::unique_ptr<FilePiece> next;
  };

  Buffer& back() { return last_ == nullptr ? front_ : last_->behind; }
  void drop_file();
  long read_file(std::size_t most);

  Buffer front_;
  std::unique_ptr<FilePiece> first_;
  FilePiece* last_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace spate::http
