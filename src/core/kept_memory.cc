#include "spate/kept_memory.h"

#include "base/memory.h"

namespace spate {

constinit thread_local KeptMemory kept_memory;

namespace {

void open_until_the_end() {
  struct Opening {
    Opening() { kept_memory.open(); }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    ~Opening() { kept_memory.close(); }
  };
  if constexpr (!kHasAddressSanitizer) static thread_local const Opening opening;
}

}  // namespace

void KeptMemory::close() noexcept {
  for (Block*& list : lists_) {
    while (Block* const block = list) {
      list = block->next;
      deallocate(block);
    }
  }
  room_ = 0;
}

void free_memory(void* memory) noexcept {
  deallocate(memory);
  open_until_the_end();
}

}  // namespace spate
