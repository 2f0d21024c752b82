// Frames: from what the thread keeps.
#include "base/kept_memory.h"
#include "spate/coro/chain.h"

namespace spate::coro {

// One that is kept does not run out, in a test either: those count what is asked of the system.
void* allocate_frame(std::size_t bytes) noexcept {
  if (void* const kept = kept_memory.find(bytes)) return kept;
  return take_memory(bytes);
}

void free_frame(void* frame, std::size_t bytes) noexcept { give_memory(frame, bytes); }

}  // namespace spate::coro
