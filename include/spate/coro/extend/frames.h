// Frames: the allocator of coroutine frames: the thread's cache, then the heap. For authors of
// awaitables.
#pragma once

#include <cstddef>

#include "spate/export.h"
#include "spate/kept_memory.h"

namespace spate::coro {

SPATE_EXPORT void* allocate_new_frame(std::size_t bytes) noexcept;

// Returns nullptr when memory runs out. Aligned for all types whose alignment is at most 16 bytes.
inline void* allocate_frame(std::size_t bytes) noexcept {
  if (void* const kept = kept_memory.find(bytes)) return kept;
  return allocate_new_frame(bytes);
}

inline void free_frame(void* frame, std::size_t bytes) noexcept { give_memory(frame, bytes); }

}  // namespace spate::coro
