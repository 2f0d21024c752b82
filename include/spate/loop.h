// Loop: waits for events and calls the watchers that asked for them.
//
// Ownership: create() returns a unique_ptr; the loop does not own watchers. It must not be
// destroyed inside one of its callbacks. Watchers that are active when it is destroyed are stopped.
//
// Threads: one thread at a time runs a loop, and only that thread may use it and its watchers, with
// three exceptions that any thread may call at any time: post(), wake() and Async::send(). While no
// thread runs the loop, any one thread may use it. This is asserted. A process may have any number
// of loops, in one thread or in many.
//
// Inside a callback: everything, nested run() included, except destroying the loop.
//
// One turn of run(), in this order:
//   1. fork hooks, prepare hooks; the kernel is told what changed; the wait; the clock is read
//   2. what is due is queued: io and ended children, timers, signals, async, posts
//   3. idle hooks, if nothing of their priority is queued; check hooks
//   4. what is queued is called, highest priority first, in order within a priority
// All that is queued when the calling begins is called in this turn. What the callbacks themselves
// feed is called too, until LoopOptions::budget of those are spent; the rest waits for the next
// turn, which then does not block. So no class of events can starve another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/assert.h"
#include "spate/error.h"
#include "spate/events.h"
#include "spate/export.h"
#include "spate/metrics.h"
#include "spate/node_loop.h"
#include "spate/time.h"

namespace spate {

// A call that the loop owns until it is made.
using Job = std::move_only_function<void()>;
using OnceCallback = std::move_only_function<void(Events)>;

enum class Run {
  until_done,  // Until stop(), or until nothing is left that keeps the loop alive.
  once,        // One turn; waits for an event if none is there.
  no_wait,     // One turn; calls what is ready and never blocks.
};

// Whether a loop looks for events again and again before it sleeps: lower latency, as the thread
// need not be woken up, for processor time.
struct Spin {
  // Before each sleep, for `window`.
  static constexpr Spin fixed(Nanos window) { return {.window = window}; }
  // Only while recent waits were short: for a few times as long as those, `window` at most, and for
  // at most `share` (0 ... 1) of the time. What comes of it decides: where looking is in vain, as
  // when the peer needs the same core, it is tried ever more rarely.
  static constexpr Spin adaptive(double share, Nanos window = Nanos{200'000}) {
    return {window, share, true};
  }

  Nanos window{0};
  double share = 1;
  bool is_adaptive = false;
};

struct LoopOptions {
  // Of Loop::backends(), or "auto", the best there is; so, too, if "io_uring" is not permitted.
  std::string_view backend = "auto";
  // How many events fed by callbacks are called in the same turn. 1 ... 2^31.
  std::uint32_t budget = 256;
  // Where time comes from; nullptr is system_clock(). Must outlive the loop.
  Clock* clock = nullptr;
  // Sleeps at once unless told otherwise. Not with a Clock of the caller's.
  Spin spin{};
};

// Which backend a loop runs on, and why it is not the one that was tried first (empty when it is).
struct BackendInfo {
  std::string_view name;
  std::string_view reason;
};

class SPATE_EXPORT Loop : public NodeLoop {
 public:
  // Errors: Error::unknown_backend; EMFILE, ENFILE, ENOMEM from the kernel. Any thread.
  [[nodiscard("a Loop that nobody keeps is destroyed at once")]]
  static Result<std::unique_ptr<Loop>> create(const LoopOptions& options = {});
  // The names that LoopOptions::backend takes, best first. Any thread.
  static std::vector<std::string_view> backends();

  // `delete` and unique_ptr come here: every Loop is the front of something larger, without virtual
  // functions, so that programs may be compiled with RTTI and the library without.
  static void operator delete(Loop* loop, std::destroying_delete_t);

  // ---- running

  // May be nested inside a callback: the inner run also calls what the outer one has queued.
  // Errors: Error::loop_forked; what the backend's wait reports (the loop stays usable, nothing is
  // lost).
  std::error_code run(Run mode = Run::until_done);
  // Runs until nothing is left, until stop(), or for `span` of loop time, whichever is first; a
  // run() nested into it ends with it. What is queued by then is still called; a span of zero is
  // one turn. Errors: as run(); ENOMEM, before anything has been called.
  std::error_code run_for(Nanos span);
  // Whether something keeps the loop alive or is queued: run() returned because of stop(), or after
  // its one turn.
  bool has_work() const;
  // Makes the innermost run() return after the callbacks that are already queued; a run() nested
  // into it meanwhile returns too. No effect outside run().
  void stop();
  // The same for all nested runs.
  void stop_all();
  // The loop whose run() this thread is in, the innermost if it is in several; nullptr outside. Any
  // thread.
  static Loop* current();

  // ref() keeps the loop alive without a watcher; unref() undoes it. After unref(), an active
  // watcher does not keep run() from returning; call ref() before stopping it.
  void ref();
  void unref();

  // ---- time

  // The monotonic time as read at the start of this turn; what timers count from. Free.
  Nanos now() const {
    SPATE_ASSERT(is_mine(), kWrongThread);
    return now_;
  }
  // Reads the clock again: before starting timers after a long computation inside one callback.
  void update_now();
  WallTime wall_now();
  // Between the two, loop time stands still, so that the timers of a process that was stopped do
  // not all expire at once. A loop that runs meanwhile waits for no timer.
  void suspend();
  void resume();

  // ---- from other threads

  // Calls `task` on the loop's thread, in this turn or the next. Each task is called exactly once,
  // those of one thread in order; a system call only if the loop sleeps. Any thread, also inside a
  // callback; not in a signal handler. False, and the task destroyed, when memory runs out. Tasks
  // that are queued when the loop is destroyed are destroyed uncalled.
  template <class F>
    requires std::is_constructible_v<Job, F&&>
  bool post(F&& task) {
    const PostPlace place = begin_post();
    if (place.task == nullptr) return false;
    new (place.task) Job(std::forward<F>(task));
    end_post(place);
    return true;
  }
  // Wakes the loop if it sleeps, without calling anything. Any thread; async-signal-safe.
  void wake() noexcept;

  // ---- calls that the loop owns until it makes them
  //
  // For calls that need not be cancelled. What was not called is destroyed with the loop.

  // Calls `task` once, `delay` from now(), and keeps the loop alive until then. To cancel, use a
  // Timer. Negative counts as zero. Errors: ENOMEM; EINVAL for kForever and more.
  std::error_code after(Nanos delay, Job task);
  // Calls `task` after the running callback and what is already queued: in this turn, or, when
  // LoopOptions::budget is spent or outside of run(), in the next. Never from inside defer(). From
  // other threads: post(). False, and the task destroyed, when memory runs out.
  bool defer(Job task);
  // Calls `callback` each time the process has received the signal, as Signal does, until the loop
  // is destroyed. Does not keep the loop alive. Errors: as Signal::start().
  std::error_code on_signal(int signum, Job callback);
  // Calls `callback` once: with the events that are ready on `fd`, or with Events::timer after
  // `timeout` (kForever: never), whichever is first; with Events::error if the kernel refuses the
  // descriptor. Keeps the loop alive until then. Errors: ENOMEM; EINVAL without a descriptor or an
  // event.
  std::error_code once(int fd, Events events, Nanos timeout, OnceCallback callback);

  // ---- embedding in another loop

  // A descriptor that is readable when run(Run::no_wait) has something to do. The loop owns it: do
  // not close, read or keep it; after_fork() replaces it. Errors: Error::not_pollable with backends
  // other than epoll; EMFILE, ENFILE, ENOMEM at the first call.
  Result<int> poll_fd();
  // Call this before the outer loop waits. Tells the kernel what changed, and returns how long the
  // outer loop may wait on poll_fd(): zero, a duration, or kForever. From here until the next run,
  // post() wakes through poll_fd().
  Nanos prepare_to_wait();

  // ---- fork

  // Call this in the child of a fork before using the loop there. Until it has succeeded, run(),
  // poll_fd() and immediate starts return Error::loop_forked, and the parent's kernel objects are
  // not touched. A loop that another thread was running at the fork is unusable in the child, and
  // must not be touched. Fork hooks run at the start of the next turn. Child watchers are stopped:
  // the processes are the parent's. Errors, after which it may be called again: EMFILE, ENFILE,
  // ENOMEM.
  std::error_code after_fork();

  // ---- looking in

  // What keeps the loop alive: active watchers, plus ref(), minus unref().
  std::int64_t active_count() const;
  std::size_t pending_count() const;
  int depth() const;  // How many run() calls are nested just now.
  std::uint64_t iteration() const;
  BackendInfo backend_info() const;
  Metrics metrics() const;
  // Callback times cost two clock readings a callback, so they are measured on request.
  void measure_callbacks(bool on);
  bool is_measuring_callbacks() const;
  // The time spent waiting, and the rest of it, from now on. They cost two clock readings a turn.
  void measure_waits(bool on);
  bool is_measuring_waits() const;
  // The callback that it is in, while callbacks are measured; none between them, and in one that
  // began before. Any thread, if any thread may read LoopOptions::clock.
  std::optional<RunningCallback> running_callback() const;
  // Allocates room for descriptors up to the number `fds`, and for `timers`, so that starting them
  // cannot run out of memory. False when memory runs out.
  bool reserve(std::size_t fds, std::size_t timers);

  using NodeLoop::stop;  // For nodes; hidden otherwise.

 protected:
  friend class Timer;  // What it does most is inline.

  Loop() = default;
  bool is_mine() const;  // The calling thread may use it.
  // begin_post() returns where to construct the calling thread's next task; end_post() publishes
  // it.
  struct PostPlace {
    Job* task;
    void* lane;
  };
  PostPlace begin_post();
  void end_post(PostPlace place);

  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept;

  Nanos now_{0};
  std::size_t parked_timers_ = 0;  // Those that are stopped and still linked.
};

}  // namespace spate
