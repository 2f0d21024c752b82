// KeptMemory: a thread's cache of freed memory blocks, by size, for coroutine frames and buffers.
// For layers and authors of awaitables.
//
// Memory may be freed on another thread than the one that allocated it; the cache of the freeing
// thread keeps it. The cache is freed when its thread ends and keeps nothing from then on, so that
// statics may be destroyed later. Under the address sanitizer the cache is disabled, so that each
// use after free is reported.
#pragma once

#include <array>
#include <cstddef>

#include "spate/export.h"

namespace spate {

class KeptMemory {
 public:
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kSmallest = 8;
  static constexpr std::size_t kLargest = kSmallest + 128 * kStep;  // Larger blocks are not kept.
  static constexpr std::size_t kMost = 256 * 1024;                  // Bytes, over all sizes.

  // Returns how many bytes to allocate for `bytes`, so that the block fits every request of its
  // list. These sizes waste nothing in the heap, whose blocks are multiples of 16 less an 8-byte
  // header.
  static constexpr std::size_t room_for(std::size_t bytes) {
    return bytes > kLargest ? bytes : list_of(bytes) * kStep + kSmallest;
  }

  // Returns a kept block for `bytes`, or nullptr.
  void* find(std::size_t bytes) noexcept {
    if (bytes > kLargest) return nullptr;
    Block*& first = lists_[list_of(bytes)];
    Block* const found = first;
    if (found == nullptr) return nullptr;
    first = found->next;
    room_ += room_for(bytes);
    return found;
  }
  // Keeps `memory`, which must have room_for(bytes) bytes. False if the block or the cache would be
  // too large; the caller then frees it.
  bool keep(void* memory, std::size_t bytes) noexcept {
    if (bytes > kLargest || room_ < room_for(bytes)) return false;
    auto* const block = static_cast<Block*>(memory);
    Block*& first = lists_[list_of(bytes)];
    block->next = first;
    first = block;
    room_ -= room_for(bytes);
    return true;
  }

  // Enables the cache. Nothing is kept before.
  void open() noexcept { room_ = kMost; }
  // Frees all kept blocks. Nothing is kept afterwards.
  SPATE_EXPORT void close() noexcept;

 private:
  struct Block {
    Block* next;
  };

  static constexpr std::size_t list_of(std::size_t bytes) {
    return (bytes + kStep - kSmallest - 1) / kStep;
  }

  std::array<Block*, (kLargest - kSmallest) / kStep + 1> lists_{};
  std::size_t room_ = 0;
};

// The calling thread's cache.
SPATE_EXPORT extern constinit thread_local KeptMemory kept_memory;

// Frees a block that is not kept. A thread's first call opens its KeptMemory.
SPATE_EXPORT void free_memory(void* memory) noexcept;

// Keeps or frees `memory`. `bytes` is the size that was requested, not room_for(bytes). nullptr is
// not allowed.
inline void give_memory(void* memory, std::size_t bytes) noexcept {
  if (!kept_memory.keep(memory, bytes)) free_memory(memory);
}

}  // namespace spate
