// Counts them.
#include "tests/coro/counted_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/memory.h"

namespace spate::testing {
namespace {

std::atomic<std::uint64_t> calls = 0;

}  // namespace

std::uint64_t calls_of_new() { return calls; }

#ifndef SPATE_ADDRESS_SANITIZER
void* count_new(std::size_t bytes) {
  ++calls;
  return std::malloc(bytes);
}
#endif

}  // namespace spate::testing

#ifndef SPATE_ADDRESS_SANITIZER
void* operator new(std::size_t bytes) {
  void* const memory = spate::testing::count_new(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return spate::testing::count_new(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
#endif
