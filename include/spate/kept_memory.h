// KeptMemory: what a thread keeps of memory that was given back, by size, for who wants as much
// next: frames of coroutines, buffers. For layers and those who write awaitables.
//
// Memory may be given back on another thread than it came from, which keeps it then. At a thread's
// end what it keeps is freed; from then on it keeps nothing, so that statics may be destroyed
// later. With the address sanitizer nothing is kept: it sees each use of what is gone.
#pragma once

#include <array>
#include <cstddef>

#include "spate/export.h"

namespace spate {

class KeptMemory {
 public:
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kSmallest = 8;
  static constexpr std::size_t kLargest = kSmallest + 128 * kStep;  // Larger ones are not kept.
  static constexpr std::size_t kMost = 256 * 1024;                  // Of all sizes, in bytes.

  // As much is to be allocated, so that it serves all who find it. The heap gives these sizes
  // without loss: its blocks are multiples of 16, less 8 of its own.
  static constexpr std::size_t room_for(std::size_t bytes) {
    return bytes > kLargest ? bytes : list_of(bytes) * kStep + kSmallest;
  }

  // nullptr if none of that size is kept.
  void* find(std::size_t bytes) noexcept {
    if (bytes > kLargest) return nullptr;
    Block*& first = lists_[list_of(bytes)];
    Block* const found = first;
    if (found == nullptr) return nullptr;
    first = found->next;
    room_ += room_for(bytes);
    return found;
  }
  // `memory` has room_for(bytes). False if that is too much.
  bool keep(void* memory, std::size_t bytes) noexcept {
    if (bytes > kLargest || room_ < room_for(bytes)) return false;
    auto* const block = static_cast<Block*>(memory);
    Block*& first = lists_[list_of(bytes)];
    block->next = first;
    first = block;
    room_ -= room_for(bytes);
    return true;
  }

  // Before, nothing is kept.
  void open() noexcept { room_ = kMost; }
  // Frees what is kept; from then on nothing is.
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

// The calling thread's.
SPATE_EXPORT extern constinit thread_local KeptMemory kept_memory;

// Frees what is not to be kept; the first of a thread opens its KeptMemory.
SPATE_EXPORT void free_memory(void* memory) noexcept;

// `bytes` are as many as were asked for. nullptr is not allowed.
inline void give_memory(void* memory, std::size_t bytes) noexcept {
  if (!kept_memory.keep(memory, bytes)) free_memory(memory);
}

}  // namespace spate
