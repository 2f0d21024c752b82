// Memory for the loop's own tables. Failure is a null pointer, never an exception.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "sys/fault.h"

namespace spate::sys {

// As realloc(): the old block stays valid when this returns nullptr.
inline void* reallocate(void* block, std::size_t bytes) {
  if (injected(Call::allocate) != 0) return nullptr;
  return std::realloc(block, bytes);
}

inline void release(void* block) { std::free(block); }

}  // namespace spate::sys
