#include "http2/testing/nghttp2_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "spate/kept_memory.h"

namespace spate::http {

namespace {

// Stored before each block, because nghttp2 does not pass the size when it frees one.
struct alignas(std::max_align_t) Head {
  std::size_t size;  // Includes this header.
};

// malloc() is used because it cannot be made to fail by tests: nghttp2 1.52 frees some memory twice
// when it runs out.
void* find_or_ask(std::size_t bytes) {
  void* const kept = kept_memory.find(bytes);
  return kept != nullptr ? kept : std::malloc(KeptMemory::room_for(bytes));
}

void* take(std::size_t size, void*) {
  std::size_t whole = 0;
  if (__builtin_add_overflow(size, sizeof(Head), &whole)) return nullptr;
  void* const memory = find_or_ask(whole);
  return memory == nullptr ? nullptr : new (memory) Head{whole} + 1;
}

void* take_zeroed(std::size_t count, std::size_t size, void* context) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* const block = take(bytes, context);
  return block == nullptr ? nullptr : std::memset(block, 0, bytes);
}

void give_back(void* block, void*) {
  if (block == nullptr) return;
  Head* const head = static_cast<Head*>(block) - 1;
  give_memory(head, head->size);
}

void* resize(void* block, std::size_t size, void* context) {
  void* const larger = take(size, context);
  if (larger == nullptr || block == nullptr) return larger;
  const std::size_t had = (static_cast<Head*>(block) - 1)->size - sizeof(Head);
  std::memcpy(larger, block, std::min(had, size));
  give_back(block, context);
  return larger;
}

constinit nghttp2_mem memory = {.mem_user_data = nullptr,
                                .malloc = take,
                                .free = give_back,
                                .calloc = take_zeroed,
                                .realloc = resize};

}  // namespace

nghttp2_mem* memory_of_nghttp2() { return &memory; }

}  // namespace spate::http
