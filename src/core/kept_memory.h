// What the library takes of kept memory. Tests can make it run out, kept or not.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "base/fault.h"
#include "spate/kept_memory.h"

namespace spate {

// As malloc() aligns it; nullptr when memory runs out.
inline void* take_memory(std::size_t bytes) {
  if (injected(SystemCall::allocate) != 0) return nullptr;
  if (void* const kept = kept_memory.find(bytes)) return kept;
  return std::malloc(KeptMemory::room_for(bytes));
}

}  // namespace spate
