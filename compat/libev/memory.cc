// The program's allocator for everything that is linked into this library: the linker redirects
// every call of malloc() and related functions here.
//
// Semantics: ev(3) "ev_set_allocator". Memory that the C++ library allocates while it is loaded
// precedes any setting of the program, and is never freed.
#include <cstddef>
#include <cstring>

#include "compat/libev/ev_api.h"

namespace {

void* (*allocator)(void* block, long size) noexcept = nullptr;

void* ask(void* block, std::size_t size) { return allocator(block, static_cast<long>(size)); }

// Zero would free it.
std::size_t at_least_one(std::size_t size) { return size == 0 ? 1 : size; }

}  // namespace

extern "C" {

void* __real_malloc(std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __real_realloc(void* block, std::size_t size);
void __real_free(void* block);

void* __wrap_malloc(std::size_t size);
void* __wrap_calloc(std::size_t count, std::size_t size);
void* __wrap_realloc(void* block, std::size_t size);
void __wrap_free(void* block);

void* __wrap_malloc(std::size_t size) {
  return allocator == nullptr ? __real_malloc(size) : ask(nullptr, at_least_one(size));
}

void* __wrap_calloc(std::size_t count, std::size_t size) {
  if (allocator == nullptr) return __real_calloc(count, size);
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* block = ask(nullptr, at_least_one(bytes));
  return block == nullptr ? nullptr : std::memset(block, 0, bytes);
}

void* __wrap_realloc(void* block, std::size_t size) {
  return allocator == nullptr ? __real_realloc(block, size) : ask(block, at_least_one(size));
}

void __wrap_free(void* block) {
  if (allocator == nullptr) return __real_free(block);
  if (block != nullptr) ask(block, 0);
}

}  // extern "C"

void ev_set_allocator(void* (*callback)(void* block, long size) noexcept) noexcept {
  allocator = callback;
}
