// Metrics: what a loop has done so far. Plain numbers, taken by Loop::metrics() on the loop's
// thread.
//
// Counting costs an increment where the thing happens anyway. Times cost readings of the clock, and
// are zero until they are asked for: Loop::measure_callbacks(), Loop::measure_waits().
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
  std::uint64_t wakeups = 0;  // Waits that ended because another thread or a signal asked for it.
  // Kernel events that were dropped, because they belonged to an earlier file of that descriptor.
  std::uint64_t stale_events = 0;
  // With measure_waits(true): time inside waits that were allowed to block, and the rest of the
  // time inside run(). Calls of run(Run::no_wait) are not measured.
  Nanos blocked{0};
  Nanos busy{0};
  Nanos longest_callback{0};      // With measure_callbacks(true).
  std::string_view longest_kind;  // As RunningCallback::kind; empty until then.
  Nanos last_callback{0};
  KernelCalls kernel_calls;
  // Those that the loop has for its own needs (process descriptors, inotify, polling) included.
  std::size_t active_timers = 0;
  std::size_t active_fds = 0;  // Descriptors with at least one watcher.
  std::size_t pending = 0;     // Events queued and not yet called.
};

// What a loop is calling just now.
struct RunningCallback {
  // "Io" (a Stream's, too), "Timer", ..., "feed()", "post()": valid for ever.
  std::string_view kind;
  // Tells one watcher from another, and a Stream from another (StreamInfo::id). Not to be followed:
  // it may have gone.
  const void* watcher = nullptr;
  Nanos since{0};
};

}  // namespace spate
