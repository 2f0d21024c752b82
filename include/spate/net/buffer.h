// Buffer: a queue of bytes in a chain of blocks: appended to at the back, read and consumed at the
// front, and handed from one Buffer to another without copying.
//
// Ownership: a Buffer owns its bytes; blocks are shared behind the scenes when only a part moves.
// append_reference() takes bytes that stay somebody else's until they have been consumed.
// Threads: one at a time. A Buffer may be handed to another thread as a whole (moved into a post);
// it then shares no state with the one it came from but the blocks' own counts, which are atomic.
// Limits: as much as memory gives; what says `false` when memory runs out has changed nothing.
//
// Views (spans) stay valid until bytes they show are consumed, or moved elsewhere and consumed
// there; flat() and prepend() also end them.
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
  // Called once, when bytes that were appended by reference are no longer needed; on whichever
  // thread then holds them. Must not touch the Buffer. A Stream that has sent such bytes has it
  // called by the loop, and then everything is allowed in it, as in any callback.
  using Release = void (*)(void* context);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    other.clear();
    return *this;
  }
  ~Buffer() { clear(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // ---- putting in

  bool append(Bytes bytes);
  bool append(std::string_view text) { return append(bytes_of(text)); }
  // Everything of `other`, which is empty afterwards. No byte is copied.
  void append(Buffer&& other);
  // The first `count` bytes of `other`, all of it if it has fewer. Copies nothing but what is
  // shorter than a block's administration.
  bool append(Buffer& other, std::size_t count);
  // Shows `bytes` without copying them; they have to stay as they are until `release(context)`.
  // When memory runs out, nothing is appended and `release` is not called.
  bool append_reference(Bytes bytes, Release release, void* context);
  // In front of all others: headers that are known when the body is.
  bool prepend(Bytes bytes);
  // Room behind the last byte, of at least `at_least` bytes, to be filled by the caller and made
  // part of the Buffer by commit(). Empty when memory runs out.
  std::span<std::byte> reserve(std::size_t at_least);
  // The first `count` bytes of the last reserve(), no more than that gave.
  void commit(std::size_t count);

  // ---- looking

  // A part of the bytes that lies in one piece. The pieces in their order are the Buffer.
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
    // A piece is never empty, so a loop over pieces never stalls.
    Pieces begin() const { return *this; }
    Pieces end() const { return {}; }

   private:
    friend class Buffer;
    explicit Pieces(const Chunk* chunk) : chunk_(chunk) {}
    const Chunk* chunk_ = nullptr;
  };
  Pieces pieces() const { return Pieces(first_); }
  // The first piece; empty if the Buffer is.
  Bytes front() const { return first_ == nullptr ? Bytes() : *pieces(); }
  // The first `count` bytes in one piece, which they are made to be if they are not. Empty if there
  // are fewer, or when memory runs out.
  Bytes flat(std::size_t count);
  // One byte; `offset` less than size(). Linear in the number of pieces.
  std::byte at(std::size_t offset) const;
  // Where `pattern` begins, at `from` or later; pieces may part it. An empty pattern is at `from`.
  std::optional<std::size_t> find(Bytes pattern, std::size_t from = 0) const;
  std::optional<std::size_t> find(std::string_view pattern, std::size_t from = 0) const {
    return find(bytes_of(pattern), from);
  }
  // Copies bytes from `offset` on, as many as there are and `target` holds. Returns how many.
  std::size_t copy(std::span<std::byte> target, std::size_t offset = 0) const;

  // ---- taking out

  // The first `count` bytes, at most size().
  void consume(std::size_t count);
  // copy() and consume().
  std::size_t read(std::span<std::byte> target);
  void clear();

  void swap(Buffer& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(spare_, other.spare_);
    std::swap(size_, other.size_);
  }

  // As consume() and clear(), but what was appended by reference goes to `spent`, unreleased. For
  // those who must not call user code just now.
  void consume(std::size_t count, Buffer& spent);
  void clear(Buffer& spent);

 private:
  struct Block;

  static Chunk* make_chunk(std::size_t capacity);
  static Chunk* make_view(Chunk& chunk, std::size_t count);
  static void destroy(Chunk* chunk);
  void link(Chunk* chunk);
  void drop_first(Buffer* spent);
  void consume(std::size_t count, Buffer* spent);
  bool matches(const Chunk* chunk, std::size_t offset, Bytes pattern) const;

  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
  Chunk* spare_ = nullptr;  // What reserve() has shown and commit() has not yet made part of us.
  std::size_t size_ = 0;
};

}  // namespace spate
