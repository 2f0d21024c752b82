// Frames: where the memory of coroutines comes from: a list for each size, of the thread. For those
// who write awaitables.
// Threads: freed where it was allocated.
#pragma once

#include <array>
#include <cstddef>

#include "spate/export.h"

namespace spate::coro {

// What a thread keeps of frames that are gone. Nothing with the address sanitizer, which then sees
// each use of one.
struct KeptFrames {
  struct Frame {
    Frame* next;
  };

  // Sizes that the heap gives without loss: its blocks are multiples of 16, less 8 of its own.
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kSmallest = 8;
  static constexpr std::size_t kLargest = kSmallest + 128 * kStep;  // Larger ones are not kept.

  static constexpr std::size_t list_of(std::size_t bytes) {
    return (bytes + kStep - kSmallest - 1) / kStep;
  }
  static constexpr std::size_t size_of(std::size_t list) { return list * kStep + kSmallest; }

  std::array<Frame*, (kLargest - kSmallest) / kStep + 1> lists{};
  std::size_t room = 0;  // Bytes that can be kept: none before the first frame is freed.
};

SPATE_EXPORT extern constinit thread_local KeptFrames kept_frames;

// From the heap, and back, or to be kept.
SPATE_EXPORT void* allocate_new_frame(std::size_t bytes) noexcept;
SPATE_EXPORT void free_old_frame(void* frame, std::size_t bytes) noexcept;

// nullptr when memory runs out. Aligned for everything that has no more than 16 bytes' alignment.
inline void* allocate_frame(std::size_t bytes) noexcept {
  if (bytes > KeptFrames::kLargest) return allocate_new_frame(bytes);
  const std::size_t list = KeptFrames::list_of(bytes);
  KeptFrames::Frame* const frame = kept_frames.lists[list];
  if (frame == nullptr) return allocate_new_frame(bytes);
  kept_frames.lists[list] = frame->next;
  kept_frames.room += KeptFrames::size_of(list);
  return frame;
}

inline void free_frame(void* memory, std::size_t bytes) noexcept {
  const std::size_t list = KeptFrames::list_of(bytes);
  if (bytes > KeptFrames::kLargest || kept_frames.room < KeptFrames::size_of(list))
    return free_old_frame(memory, bytes);
  auto* const frame = static_cast<KeptFrames::Frame*>(memory);
  frame->next = kept_frames.lists[list];
  kept_frames.lists[list] = frame;
  kept_frames.room -= KeptFrames::size_of(list);
}

}  // namespace spate::coro
