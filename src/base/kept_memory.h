// KeptMemory: what a thread keeps of memory that was given back, by size, for who wants as much
// next.
//
//   constinit thread_local KeptMemory kept;
//   thread_local const KeptMemory::UntilEnd until_end(kept);
//
// Touch the latter where memory is taken: at the thread's end it frees what is kept. From then on
// nothing is, so that statics may be destroyed behind it.
#pragma once

#include <array>
#include <cstddef>

#include "base/memory.h"

namespace spate {

class KeptMemory {
 public:
  class UntilEnd;

  static constexpr std::size_t kLargest = 2048;  // Larger ones are not kept.

  // At least that many bytes, as malloc() aligns them; nullptr when memory runs out.
  void* take(std::size_t bytes) {
    if (bytes > kLargest) return reallocate(nullptr, bytes);
    const std::size_t list = list_of(bytes);
    if (Free* const kept = take_from(list)) return kept;
    return reallocate(nullptr, size_of(list));
  }
  // What was taken with that many.
  void give_back(void* memory, std::size_t bytes) {
    if (bytes > kLargest || !keep(static_cast<Free*>(memory), list_of(bytes))) deallocate(memory);
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kStep = 32;
  static constexpr std::size_t kMostKept = 256 * 1024;  // Of all sizes together, in bytes.

  static std::size_t list_of(std::size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / kStep; }
  static std::size_t size_of(std::size_t list) { return (list + 1) * kStep; }

  Free* take_from(std::size_t list) {
    Free* const kept = lists_[list];
    if (kept == nullptr) return nullptr;
    mark_used(kept, size_of(list));
    lists_[list] = kept->next;
    room_ += size_of(list);
    return kept;
  }
  bool keep(Free* memory, std::size_t list) {
    if (size_of(list) > room_) return false;
    memory->next = lists_[list];
    lists_[list] = memory;
    room_ -= size_of(list);
    mark_unused(memory, size_of(list));
    return true;
  }
  void retire() {
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      while (Free* kept = take_from(i)) deallocate(kept);
    }
    room_ = 0;
  }

  std::array<Free*, kLargest / kStep> lists_{};
  std::size_t room_ = kMostKept;
};

class KeptMemory::UntilEnd {
 public:
  explicit UntilEnd(KeptMemory& kept) : kept_(kept) {}
  UntilEnd(const UntilEnd&) = delete;
  UntilEnd& operator=(const UntilEnd&) = delete;
  ~UntilEnd() { kept_.retire(); }

  KeptMemory& kept() const { return kept_; }

 private:
  KeptMemory& kept_;
};

}  // namespace spate
