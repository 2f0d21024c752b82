// Frames: what a thread begins and ends with.
#include "spate/coro/frames.h"

#include <cstdint>

#include "base/memory.h"

namespace spate::coro {
namespace {

#ifdef SPATE_ADDRESS_SANITIZER
constexpr std::size_t kMostKept = 0;
#else
constexpr std::size_t kMostKept = 256 * 1024;  // Of all sizes together, in bytes.
#endif

void free_all(KeptFrames::Frame* frame) {
  while (frame != nullptr) {
    KeptFrames::Frame* const next = frame->next;
    deallocate(frame);
    frame = next;
  }
}

// From a thread's first frame that is freed to the thread's end.
enum class Keeping : std::uint8_t { not_yet, on, over };
constinit thread_local Keeping keeping = Keeping::not_yet;

class Keeper {
 public:
  Keeper() {
    kept_frames.room = kMostKept;
    keeping = Keeping::on;
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    for (KeptFrames::Frame*& list : kept_frames.lists) {
      free_all(list);
      list = nullptr;
    }
    kept_frames.room = 0;
    keeping = Keeping::over;
  }
};

void begin_to_keep() { static thread_local const Keeper keeper; }

}  // namespace

constinit thread_local KeptFrames kept_frames;

void* allocate_new_frame(std::size_t bytes) noexcept {
  if (bytes > KeptFrames::kLargest) return reallocate(nullptr, bytes);
  return reallocate(nullptr, KeptFrames::size_of(KeptFrames::list_of(bytes)));
}

void free_old_frame(void* frame, std::size_t bytes) noexcept {
  if (keeping != Keeping::not_yet || bytes > KeptFrames::kLargest) return deallocate(frame);
  begin_to_keep();
  if (kMostKept == 0) return deallocate(frame);
  free_frame(frame, bytes);
}

}  // namespace spate::coro
