#include "spate/coro/frames.h"

#include "base/memory.h"

namespace spate::coro {

void* allocate_new_frame(std::size_t bytes) noexcept {
  return reallocate(nullptr, KeptMemory::room_for(bytes));
}

}  // namespace spate::coro
