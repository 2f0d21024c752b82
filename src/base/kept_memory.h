// KeptMemory: what a thread keeps of memory that was given back, by size, for who wants as much
// next. Bursts that malloc() has to search for are served from there.
//
//   void* memory = take_memory(bytes);
//   give_memory(memory, bytes);
//
// It may be given back on another thread, which keeps it. At the thread's end all is freed; from
// then on nothing is kept, so that statics may be destroyed behind it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>

#include "base/fault.h"
#include "base/memory.h"

namespace spate {

class KeptMemory {
 public:
  static constexpr std::size_t kLargest = 2048;  // Larger ones are not kept.

  // nullptr if none of that size is kept.
  void* find(std::size_t bytes) {
    if (bytes > kLargest) return nullptr;
    Free*& first = lists_[list_of(bytes)];
    Free* const found = first;
    if (found == nullptr) return nullptr;
    mark_used(found, room_for(bytes));
    first = found->next;
    room_ += room_for(bytes);
    return found;
  }
  // False if it is too much.
  bool keep(void* memory, std::size_t bytes) {
    if (bytes > kLargest || room_for(bytes) > room_) return false;
    auto* const kept = static_cast<Free*>(memory);
    Free*& first = lists_[list_of(bytes)];
    kept->next = first;
    first = kept;
    room_ -= room_for(bytes);
    mark_unused(kept, room_for(bytes));
    return true;
  }
  // As much is to be asked for, so that it is found by all that fit into it.
  static std::size_t room_for(std::size_t bytes) {
    return bytes > kLargest ? bytes : (list_of(bytes) + 1) * kStep;
  }
  // Until then nothing is kept.
  void open() { room_ = kMostKept; }
  // From then on nothing is.
  void retire() {
    for (std::size_t list = 1; list <= lists_.size(); ++list) {
      while (void* const kept = find(list * kStep)) deallocate(kept);
    }
    room_ = 0;
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kStep = 32;
  static constexpr std::size_t kMostKept = 256 * 1024;  // Of all sizes together, in bytes.

  static std::size_t list_of(std::size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / kStep; }

  std::array<Free*, kLargest / kStep> lists_{};
  std::size_t room_ = 0;
};

// Of the thread.
inline constinit thread_local KeptMemory kept_memory;

// From the first memory that a thread gives back to its end, but for the address sanitizer, which
// is to find who uses it once more.
inline void begin_to_keep() {
  struct Keeping {
    Keeping() { kept_memory.open(); }
    Keeping(const Keeping&) = delete;
    Keeping& operator=(const Keeping&) = delete;
    ~Keeping() { kept_memory.retire(); }
  };
#ifndef SPATE_ADDRESS_SANITIZER
  static thread_local const Keeping keeping;
#endif
}

// As malloc() aligns it; nullptr when memory runs out.
inline void* take_memory(std::size_t bytes) {
  if (injected(SystemCall::allocate) != 0) return nullptr;
  if (void* const kept = kept_memory.find(bytes)) return kept;
  return std::malloc(KeptMemory::room_for(bytes));
}
// `bytes` are as many as it was taken with.
inline void give_memory(void* memory, std::size_t bytes) {
  if (kept_memory.keep(memory, bytes)) return;
  deallocate(memory);
  begin_to_keep();
}

}  // namespace spate
