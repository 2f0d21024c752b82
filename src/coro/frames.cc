// Frames: from what the thread keeps.
#include "base/kept_memory.h"
#include "spate/coro/chain.h"

namespace spate::coro {
namespace {

constinit thread_local KeptMemory kept;
thread_local const KeptMemory::UntilEnd until_end(kept);

}  // namespace

void* allocate_frame(std::size_t bytes) noexcept { return until_end.kept().take(bytes); }

void free_frame(void* frame, std::size_t bytes) noexcept { kept.give_back(frame, bytes); }

}  // namespace spate::coro
