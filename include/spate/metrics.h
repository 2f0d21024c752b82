// Metrics: counters of a loop. Plain numbers, taken by Loop::metrics() on the loop's thread.
//
// A counter costs one increment at an event that happens anyway. Times cost readings of the clock,
// and are zero until measuring is turned on: Loop::measure_callbacks(), Loop::measure_waits().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "spate/time.h"

namespace spate {

// How often the loop itself entered the kernel.
struct KernelCalls {
  std::uint64_t wait = 0;        // epoll_wait, epoll_pwait2, poll, select, io_uring_enter
  std::uint64_t modify = 0;      // epoll_ctl
  std::uint64_t wake_write = 0;  // by other threads, to wake this loop
};

struct Metrics {
  std::uint64_t turns = 0;
  std::uint64_t events = 0;   // Callbacks called, posted tasks included.
  std::uint64_t posts = 0;    // Posted tasks called.
  std::uint64_t wakeups = 0;  // Waits that another thread or a signal ended.
  // Kernel events that were dropped because they belonged to a file that previously had that
  // descriptor.
  std::uint64_t stale_events = 0;
  // Need measure_waits(true). `blocked` is the time inside waits that were allowed to block, `busy`
  // the rest of the time inside run(). Calls of run(Run::no_wait) are not measured.
  Nanos blocked{0};
  Nanos busy{0};
  Nanos longest_callback{0};      // Needs measure_callbacks(true).
  std::string_view longest_kind;  // As RunningCallback::kind; empty if none was measured.
  Nanos last_callback{0};
  KernelCalls kernel_calls;
  // Includes the loop's internal ones (process descriptors, inotify, polling).
  std::size_t active_timers = 0;
  std::size_t active_fds = 0;  // Descriptors with at least one watcher.
  std::size_t pending = 0;     // Events queued and not yet called.
};

// The callback that a loop is in.
struct RunningCallback {
  // "Io" (also for a Stream), "Timer", ..., "feed()", "post()". Valid for ever.
  std::string_view kind;
  // Identifies the watcher or the Stream (StreamInfo::id). Must not be dereferenced: the watcher
  // may be destroyed.
  const void* watcher = nullptr;
  Nanos since{0};
};

}  // namespace spate
