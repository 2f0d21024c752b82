#include "spate/coro/extend/frames.h"

#include <cstdlib>

#include "base/memory.h"

namespace spate::coro {

void* allocate_new_frame(std::size_t bytes) noexcept {
  // With the address sanitizer nothing is cached, so that each frame is new. malloc() is used
  // because it cannot be made to fail: tests of scarce memory must find the same failures as
  // without the sanitizer, where cached frames do not fail.
  if (kHasAddressSanitizer && bytes <= KeptMemory::kLargest)
    return std::malloc(KeptMemory::room_for(bytes));
  return reallocate(nullptr, KeptMemory::room_for(bytes));
}

}  // namespace spate::coro
