// Frames: a list for each size, of the thread.
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/memory.h"
#include "spate/coro/chain.h"

namespace spate::coro {
namespace {

// Sizes that the heap gives without loss: its blocks are multiples of 16, less 8 of its own.
constexpr std::size_t kStep = 16;
constexpr std::size_t kSmallest = 8;
constexpr std::size_t kLargest = kSmallest + 128 * kStep;  // Larger ones are not kept.
constexpr std::size_t kMostKept = 256 * 1024;              // Of all sizes together, in bytes.

struct Free {
  Free* next;
};

// What a thread keeps of frames that are gone: nothing before the first, and after its end.
struct Kept {
  enum class State : std::uint8_t { fresh, open, closed };

  std::array<Free*, (kLargest - kSmallest) / kStep + 1> lists{};
  std::size_t room = 0;  // Bytes that can be kept.
  State state = State::fresh;
};

constinit thread_local Kept kept;

std::size_t list_of(std::size_t bytes) { return (bytes + kStep - kSmallest - 1) / kStep; }
std::size_t size_of(std::size_t list) { return list * kStep + kSmallest; }

Free* take(std::size_t list) {
  Free* const frame = kept.lists[list];
  if (frame == nullptr) return nullptr;
  mark_used(frame, size_of(list));
  kept.lists[list] = frame->next;
  kept.room += size_of(list);
  return frame;
}

bool keep(void* memory, std::size_t list) {
  const std::size_t size = size_of(list);
  if (kept.room < size) return false;
  auto* const frame = static_cast<Free*>(memory);
  frame->next = kept.lists[list];
  kept.lists[list] = frame;
  kept.room -= size;
  mark_unused(frame, size);
  return true;
}

// Begins to keep them, and frees them at the thread's end.
class Keeper {
 public:
  Keeper() {
    kept.room = kMostKept;
    kept.state = Kept::State::open;
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    for (std::size_t i = 0; i < kept.lists.size(); ++i) {
      while (Free* frame = take(i)) deallocate(frame);
    }
    kept.room = 0;
    kept.state = Kept::State::closed;
  }
};

// Out of line, as it is rare: the first of a thread, or there is no room.
[[gnu::noinline]] void keep_or_free(void* frame, std::size_t list) {
  if (kept.state == Kept::State::fresh) {
    static thread_local const Keeper keeper;
    if (keep(frame, list)) return;
  }
  deallocate(frame);
}

}  // namespace

void* allocate_frame(std::size_t bytes) noexcept {
  if (bytes > kLargest) return reallocate(nullptr, bytes);
  const std::size_t list = list_of(bytes);
  if (Free* const frame = take(list)) return frame;
  return reallocate(nullptr, size_of(list));
}

void free_frame(void* frame, std::size_t bytes) noexcept {
  if (bytes > kLargest) return deallocate(frame);
  const std::size_t list = list_of(bytes);
  if (!keep(frame, list)) keep_or_free(frame, list);
}

}  // namespace spate::coro
