// Allocation for the loop's tables. Failure is a null pointer, never an exception.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/fault.h"

#if defined(__SANITIZE_ADDRESS__)
#define SPATE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPATE_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef SPATE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace spate {

// As realloc(): the old block stays valid when this returns nullptr.
inline void* reallocate(void* block, std::size_t bytes) {
  if (injected(SystemCall::allocate) != 0) return nullptr;
  return std::realloc(block, bytes);
}

inline void deallocate(void* block) { std::free(block); }

// Marks cached memory for the address sanitizer, which would otherwise treat it as used.
#ifdef SPATE_ADDRESS_SANITIZER
inline constexpr bool kHasAddressSanitizer = true;
inline void mark_used(void* memory, std::size_t size) { ASAN_UNPOISON_MEMORY_REGION(memory, size); }
inline void mark_unused(void* memory, std::size_t size) { ASAN_POISON_MEMORY_REGION(memory, size); }
#else
inline constexpr bool kHasAddressSanitizer = false;
inline void mark_used(void*, std::size_t) {}
inline void mark_unused(void*, std::size_t) {}
#endif

// In debug builds: overwrites bytes that were valid only during a call.
#ifdef NDEBUG
inline void spoil(std::span<const std::byte>) {}
#else
inline void spoil(std::span<const std::byte> bytes) {
  std::memset(const_cast<std::byte*>(bytes.data()), 0xdd, bytes.size());
}
#endif

}  // namespace spate
