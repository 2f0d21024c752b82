// Frames: where the memory of coroutines comes from: what the thread keeps, or the heap. For those
// who write awaitables.
#pragma once

#include <cstddef>

#include "spate/export.h"
#include "spate/kept_memory.h"

namespace spate::coro {

SPATE_EXPORT void* allocate_new_frame(std::size_t bytes) noexcept;

// nullptr when memory runs out. Aligned for everything that has no more than 16 bytes' alignment.
inline void* allocate_frame(std::size_t bytes) noexcept {
  if (void* const kept = kept_memory.find(bytes)) return kept;
  return allocate_new_frame(bytes);
}

inline void free_frame(void* frame, std::size_t bytes) noexcept { give_memory(frame, bytes); }

}  // namespace spate::coro
