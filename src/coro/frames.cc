// Frames: a list for each size, of the thread.
#include <array>
#include <cstddef>

#include "base/memory.h"
#include "spate/coro/chain.h"

namespace spate::coro {
namespace {

constexpr std::size_t kStep = 32;
constexpr std::size_t kLargest = 2048;         // Larger ones are not kept.
constexpr std::size_t kMostKept = 256 * 1024;  // Of all sizes together, in bytes.

struct Free {
  Free* next;
};

// What a thread keeps of frames that are gone.
class Kept {
 public:
  Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      while (Free* frame = take(i)) deallocate(frame);
    }
  }

  Free* take(std::size_t list) {
    Free* const frame = lists_[list];
    if (frame == nullptr) return nullptr;
    mark_used(frame, size_of(list));
    lists_[list] = frame->next;
    bytes_ -= size_of(list);
    return frame;
  }
  bool give(Free* frame, std::size_t list) {
    if (bytes_ + size_of(list) > kMostKept) return false;
    frame->next = lists_[list];
    lists_[list] = frame;
    bytes_ += size_of(list);
    mark_unused(frame, size_of(list));
    return true;
  }

  static std::size_t list_of(std::size_t bytes) { return (bytes - 1) / kStep; }
  static std::size_t size_of(std::size_t list) { return (list + 1) * kStep; }

 private:
  std::array<Free*, kLargest / kStep> lists_{};
  std::size_t bytes_ = 0;
};

thread_local Kept kept;

}  // namespace

void* allocate_frame(std::size_t bytes) noexcept {
  if (bytes > kLargest) return reallocate(nullptr, bytes);
  const std::size_t list = Kept::list_of(bytes);
  if (Free* const frame = kept.take(list)) return frame;
  return reallocate(nullptr, Kept::size_of(list));
}

void free_frame(void* frame, std::size_t bytes) noexcept {
  if (bytes <= kLargest && kept.give(static_cast<Free*>(frame), Kept::list_of(bytes))) return;
  deallocate(frame);
}

}  // namespace spate::coro
