#include "spate/coro/frames.h"

#include <cstdlib>

#include "base/memory.h"

namespace spate::coro {

void* allocate_new_frame(std::size_t bytes) noexcept {
  // Nothing is kept then, so each frame is new. Elsewhere most are kept, and those do not run out:
  // tests of scarce memory are to find the same.
  if (kHasAddressSanitizer && bytes <= KeptMemory::kLargest)
    return std::malloc(KeptMemory::room_for(bytes));
  return reallocate(nullptr, KeptMemory::room_for(bytes));
}

}  // namespace spate::coro
