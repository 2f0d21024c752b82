// The library's allocations from the thread's cache. Tests can make them fail, cached or not.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "base/fault.h"
#include "spate/kept_memory.h"

namespace spate {

// Returns memory aligned as by malloc(); nullptr when memory runs out.
inline void* take_memory(std::size_t bytes) {
  if (injected(SystemCall::allocate) != 0) return nullptr;
  if (void* const kept = kept_memory.find(bytes)) return kept;
  return std::malloc(KeptMemory::room_for(bytes));
}

}  // namespace spate
