// Block: memory from where frames come, for copies of what has to last longer than the call that
// brought it. For those who write awaitables.
// Threads: freed where it was allocated.
#pragma once

#include <cstddef>
#include <utility>

#include "spate/coro/frames.h"

namespace spate::coro {

class Block {
 public:
  Block() = default;
  // Empty when memory runs out. Aligned for everything that has no more than 16 bytes' alignment.
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
