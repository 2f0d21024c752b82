// Block: memory from the allocator of coroutine frames, for copies of data that must outlive the
// call that received them. For authors of awaitables.
// Threads: must be freed on the thread that allocated it.
#pragma once

#include <cstddef>
#include <utility>

#include "spate/coro/extend/frames.h"

namespace spate::coro {

class Block {
 public:
  Block() = default;
  // Empty when memory runs out. Aligned for all types whose alignment is at most 16 bytes.
  explicit Block(std::size_t size)
      : memory_(static_cast<std::byte*>(allocate_frame(size == 0 ? 1 : size))),
        size_(size == 0 ? 1 : size) {}
  Block(Block&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Block() {
    if (memory_ != nullptr) free_frame(memory_, size_);
  }

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte* data() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate::coro
