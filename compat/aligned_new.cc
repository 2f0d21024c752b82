// Operator new with an alignment, for both libraries.
//
// libstdc++'s own would take memory by aligned_alloc(), which the program cannot replace, and give
// it to the program's free(). So these functions allocate a little more, and store the address to
// be freed before the block.
#include <cstddef>
#include <cstdint>
#include <new>

namespace {

std::size_t with_room(std::size_t size, std::align_val_t alignment) {
  return size + static_cast<std::size_t>(alignment) + sizeof(void*);
}

void* align(void* block, std::align_val_t alignment) {
  const auto unit = static_cast<std::uintptr_t>(alignment);
  const auto first = reinterpret_cast<std::uintptr_t>(block) + sizeof(void*);
  auto* aligned = reinterpret_cast<void**>((first + unit - 1) / unit * unit);
  aligned[-1] = block;
  return aligned;
}

}  // namespace

void* operator new(std::size_t size, std::align_val_t alignment) {
  return align(::operator new(with_room(size, alignment)), alignment);
}

void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  void* block = ::operator new(with_room(size, alignment), std::nothrow);
  return block != nullptr ? align(block, alignment) : nullptr;
}

void operator delete(void* memory, std::align_val_t) noexcept {
  if (memory != nullptr) {
    ::operator delete(static_cast<void**>(memory)[-1]);
  }
}

void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  ::operator delete(memory, alignment);
}
