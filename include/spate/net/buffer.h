// Buffer: a queue of bytes in a chain of blocks. Bytes are appended at the back, read and consumed
// at the front, and moved between Buffers without copying.
//
// Ownership: a Buffer owns its bytes. Buffers share blocks after a part was moved, and after
// append_shared(). append_reference() refers to memory of the caller until it has been consumed.
// Threads: one at a time. A Buffer may be moved to another thread: the reference counts of shared
// blocks are atomic.
// Functions that return false when memory runs out have then changed nothing.
//
// Views (spans) are valid until their bytes are consumed, here or in the Buffer that they were
// moved to; flat() and prepend() also invalidate them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "spate/export.h"
#include "spate/net/bytes.h"

namespace spate {

class SPATE_EXPORT Buffer {
  struct Chunk;

 public:
  // Called once, when bytes that were appended by reference are no longer needed, on the thread
  // that then holds them. Must not touch the Buffer. For bytes written to a Stream the loop calls
  // it; then everything is allowed inside, as in any callback.
  using Release = void (*)(void* context);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);  // Releases the old bytes here, not with `other`.
    return *this;
  }
  ~Buffer() { clear(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // ---- appending

  // Copies bytes to the back. Returns false when memory runs out; then nothing was appended.
  bool append(Bytes bytes);
  bool append(std::string_view text) { return append(bytes_of(text)); }
  // Moves all of `other`. Copies no byte.
  void append(Buffer&& other);
  // Moves the first `count` bytes of `other`, or all if it has fewer. Copies only pieces that are
  // shorter than a block's header.
  bool append(Buffer& other, std::size_t count);
  // Appends a reference to `bytes` without copying them; they must not change until
  // `release(context)` is called. When memory runs out, nothing is appended and `release` is not
  // called.
  bool append_reference(Bytes bytes, Release release, void* context);
  // Appends up to `count` bytes of `other`, from `offset` on, and leaves `other` unchanged. Both
  // refer to the same memory, which is freed when both have consumed it: for a message that goes to
  // several Streams. Copies only pieces of less than 512 bytes.
  bool append_shared(const Buffer& other, std::size_t offset = 0, std::size_t count = SIZE_MAX);
  // Inserts at the front: for a header that depends on the body.
  bool prepend(Bytes bytes);
  // Returns room for at least `at_least` bytes at the back, which the caller fills and commit()
  // appends. Empty when memory runs out.
  std::span<std::byte> reserve(std::size_t at_least);
  // Appends the first `count` bytes of the last reserve().
  void commit(std::size_t count);

  // ---- reading

  // Iterates over the contiguous pieces, in order.
  class Pieces {
   public:
    using value_type = Bytes;
    using difference_type = std::ptrdiff_t;

    Pieces() = default;
    Bytes operator*() const;
    Pieces& operator++();
    Pieces operator++(int) {
      Pieces old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Pieces& other) const { return chunk_ == other.chunk_; }
    // Iterates over the pieces; none is empty.
    Pieces begin() const { return *this; }
    Pieces end() const { return {}; }

   private:
    friend class Buffer;
    explicit Pieces(const Chunk* chunk) : chunk_(chunk) {}
    const Chunk* chunk_ = nullptr;
  };
  Pieces pieces() const { return Pieces(first_); }
  // Returns the first piece; empty if the Buffer is.
  Bytes front() const { return first_ == nullptr ? Bytes() : *pieces(); }
  // Returns the last piece; empty if the Buffer is.
  Bytes back() const;
  // Makes the first `count` bytes contiguous and returns them. Empty if there are fewer, or when
  // memory runs out.
  Bytes flat(std::size_t count);
  // Returns one byte; `offset` is less than size(). Linear in the number of pieces.
  std::byte at(std::size_t offset) const;
  // Returns the offset of the first `pattern` at or after `from`, across pieces. An empty pattern
  // is found at `from`.
  std::optional<std::size_t> find(Bytes pattern, std::size_t from = 0) const;
  std::optional<std::size_t> find(std::string_view pattern, std::size_t from = 0) const {
    return find(bytes_of(pattern), from);
  }
  // Copies bytes from `offset` on, until the Buffer ends or `target` is full. Returns how many.
  std::size_t copy(std::span<std::byte> target, std::size_t offset = 0) const;

  // ---- consuming

  // Removes the first `count` bytes, at most size().
  void consume(std::size_t count);
  // Copies and consumes bytes, as copy() and consume(). Returns how many.
  std::size_t read(std::span<std::byte> target);
  void clear();
  // Removes all bytes, and keeps the memory of their blocks for the next calls of reserve(). A
  // block is freed if another Buffer refers to it, or if it is smaller than reserve() then
  // requires. clear() and the destructor free the others.
  void recycle();

  void swap(Buffer& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(spare_, other.spare_);
    std::swap(size_, other.size_);
  }

  // As consume() and clear(), except that bytes appended by reference move to `spent` without being
  // released: for callers that must not call user code at that point.
  void consume(std::size_t count, Buffer& spent);
  void clear(Buffer& spent);

 private:
  struct Block;

  static Chunk* make_chunk(std::size_t capacity);
  static Chunk* make_view(const Chunk& chunk, std::byte* begin, std::size_t count);
  static void destroy(Chunk* chunk);
  void link(Chunk* chunk);
  bool is_continued_by(const Chunk& chunk, const std::byte* begin) const;
  bool show(const Chunk& chunk, std::byte* begin, std::size_t count);
  bool append_shared_pieces(const Chunk& chunk, std::byte* begin, std::size_t count);
  void drop_first(Buffer* spent);
  void drop_spare();
  void consume(std::size_t count, Buffer* spent);
  bool matches(const Chunk* chunk, std::size_t offset, Bytes pattern) const;

  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
  // A list. The first was returned by reserve() and not yet appended by commit(); the others were
  // kept by recycle().
  Chunk* spare_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate
