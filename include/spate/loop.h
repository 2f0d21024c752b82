// Loop: waits for events and calls the watchers that requested them.
//
// Ownership: create() returns a unique_ptr; the loop does not own watchers. It must not be
// destroyed inside one of its callbacks. Watchers that are active when it is destroyed are stopped.
//
// Threads: one thread at a time runs a loop, and only that thread may use it and its watchers, with
// three exceptions that any thread may call at any time: post(), wake() and Async::send(). While no
// thread runs the loop, any one thread may use it. This is asserted. A process may have any number
// of loops, in one thread or in many.
//
// Inside a callback: everything is allowed, nested run() included, except destroying the loop.
//
// One turn of run(), in this order:
//   1. call the fork hooks and prepare hooks; update the kernel; wait; read the clock
//   2. queue the due events: io and ended children, timers, signals, async, posts
//   3. call the idle hooks, if nothing of their priority is queued; call the check hooks
//   4. call the queued events, highest priority first, in order within a priority
// All events that are queued when step 4 begins are called in this turn. Events that the callbacks
// feed are called in the same turn too, until LoopOptions::budget of them are spent. The rest waits
// for the next turn, which then does not block. So no class of events can starve another.
#pragma once

#include <cstddef>
#include <cstdint>
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
#include "spate/function.h"
#include "spate/layer/node_loop.h"
#include "spate/metrics.h"
#include "spate/time.h"

namespace spate {

// A function object that the loop owns until it calls it.
using Job = Function<void()>;
using OnceCallback = Function<void(Events)>;

enum class Run {
  until_done,  // Until stop(), or until nothing keeps the loop alive.
  once,        // One turn; waits if no event is due. An interrupted wait may end early.
  no_wait,     // One turn; calls the due events and never blocks.
};

// Whether a loop polls for events repeatedly before it sleeps. This lowers latency, because the
// thread need not be woken up, and costs processor time.
struct Spin {
  // Polls for `window` before each sleep.
  static constexpr Spin fixed(Nanos window) { return {.window = window}; }
  // Polls only while recent waits were short: for a few times their length, at most `window`, and
  // for at most `share` (0 ... 1) of the time. Adapts to the hit rate: polling that finds nothing,
  // for example because the peer needs the same core, is tried less and less often.
  static constexpr Spin adaptive(double share, Nanos window = Nanos{200'000}) {
    return {window, share, true};
  }

  Nanos window{0};
  double share = 1;
  bool is_adaptive = false;
};

struct LoopOptions {
  // A name from Loop::backends(), or "auto" for the best available. Falls back to "auto" if the
  // system forbids "io_uring".
  std::string_view backend = "auto";
  // How many events fed by callbacks are called in the same turn. 1 ... 2^31.
  std::uint32_t budget = 256;
  // The source of time; nullptr is system_clock(). Must outlive the loop.
  Clock* clock = nullptr;
  // By default the loop sleeps at once. Must not be set together with `clock`.
  Spin spin{};
};

// The backend that a loop runs on, and why it is not the preferred one (empty if it is).
struct BackendInfo {
  std::string_view name;
  std::string_view reason;
};

class SPATE_EXPORT Loop : public NodeLoop {
 public:
  // Errors: Error::unknown_backend; EMFILE, ENFILE, ENOMEM from the kernel. Any thread.
  [[nodiscard("a discarded Loop is destroyed at once")]]
  static Result<std::unique_ptr<Loop>> create(const LoopOptions& options = {});
  // Returns the names that LoopOptions::backend accepts, best first. Any thread.
  static std::vector<std::string_view> backends();

  // Called by `delete` and unique_ptr. A Loop is the front of a larger object, without virtual
  // functions, so that programs may be compiled with RTTI and the library without.
  static void operator delete(Loop* loop, std::destroying_delete_t);

  // ---- running

  // Runs the loop. May be nested inside a callback: the inner run also calls events that the outer
  // one has queued. Errors: Error::loop_forked, and errors of the backend's wait, after which the
  // loop is usable and no event is lost.
  std::error_code run(Run mode = Run::until_done);
  // Runs until nothing keeps the loop alive, until stop(), or for `span` of loop time, whichever is
  // first. A run() nested into it returns with it. Events that are queued when the time is over are
  // still called; a span of zero is one turn. Errors: as run(); ENOMEM, before anything was called.
  std::error_code run_for(Nanos span);
  // True if something keeps the loop alive or is queued. After run() it means that stop() was
  // called, or that the one turn is over.
  bool has_work() const;
  // Makes the innermost run() return after the callbacks that are already queued. A run() that
  // these callbacks nest into it returns too. No effect outside run().
  void stop();
  // As stop(), for all nested runs.
  void stop_all();
  // Returns the loop whose run() this thread is in: the innermost if there are several, nullptr if
  // none. Any thread.
  static Loop* current();

  // ref() keeps the loop alive without a watcher; unref() undoes it. After unref(), one active
  // watcher does not keep run() from returning; call ref() before stopping that watcher.
  void ref();
  void unref();

  // ---- time

  // Returns the monotonic time that was read at the start of this turn. Timers count from it. Makes
  // no system call.
  Nanos now() const {
    SPATE_ASSERT(is_mine(), kWrongThread);
    return now_;
  }
  // Reads the clock again. Call it before starting timers after a long computation inside one
  // callback.
  void update_now();
  WallTime wall_now();
  // suspend() stops the loop time until resume(), so that the timers of a process that was stopped
  // do not all expire at once. A loop that runs meanwhile waits for no timer.
  void suspend();
  void resume();

  // ---- from other threads

  // Calls `task` on the loop's thread, in this turn or the next. Each task is called exactly once,
  // and the tasks of one thread are called in order. Makes a system call only if the loop sleeps.
  // Any thread, also inside a callback; not in a signal handler. Returns false and destroys the
  // task when memory runs out. Tasks that are queued when the loop is destroyed are destroyed
  // uncalled.
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

  // ---- one-shot calls that the loop owns
  //
  // For calls that need not be cancelled. Calls that were not made are destroyed with the loop.

  // Calls `task` once, `delay` from now(), and keeps the loop alive until then. To cancel, use a
  // Timer. A negative delay counts as zero. Errors: ENOMEM; EINVAL for kForever and more.
  std::error_code after(Nanos delay, Job task);
  // Calls `task` after the running callback and the events that are already queued. This is in the
  // same turn, or in the next if LoopOptions::budget is spent or no run() is active. Never calls
  // `task` from inside defer(). From other threads use post(). Returns false and destroys the task
  // when memory runs out.
  bool defer(Job task);
  // Calls `callback` each time the process receives the signal, as Signal does, until the loop is
  // destroyed. Does not keep the loop alive. Errors: as Signal::start().
  std::error_code on_signal(int signum, Job callback);
  // Calls `callback` once: with the events that are ready on `fd`, with Events::timer after
  // `timeout` (kForever: never), or with Events::error if the kernel refuses the descriptor,
  // whichever is first. Keeps the loop alive until then. Errors: ENOMEM; EINVAL without a
  // descriptor or an event.
  std::error_code once(int fd, Events events, Nanos timeout, OnceCallback callback);

  // ---- embedding in another loop

  // Returns a descriptor that is readable when run(Run::no_wait) has something to do. The loop owns
  // it: do not close, read or keep it; after_fork() replaces it. Errors: Error::not_pollable with
  // poll and select; EMFILE, ENFILE, ENOMEM at the first call.
  Result<int> poll_fd();
  // Updates the kernel, and returns how long the outer loop may wait on poll_fd(): zero, a
  // duration, or kForever. Call it before the outer loop waits. From here until the next run,
  // post() wakes through poll_fd().
  Nanos prepare_to_wait();

  // ---- fork

  // Makes the loop usable in the child of a fork; call it there before any other use. Until it has
  // succeeded, run(), poll_fd() and immediate starts return Error::loop_forked, and the parent's
  // kernel objects are not touched. Fork hooks run at the start of the next turn. Child watchers
  // are stopped: the processes are the parent's. A loop that another thread was running at the fork
  // is unusable in the child, and must not be touched. Errors, after which it may be called again:
  // EMFILE, ENFILE, ENOMEM.
  std::error_code after_fork();

  // ---- statistics

  // Returns how many things keep the loop alive: active watchers, plus ref(), minus unref().
  std::int64_t active_count() const;
  std::size_t pending_count() const;
  int depth() const;  // How many run() calls are nested at this moment.
  std::uint64_t iteration() const;
  BackendInfo backend_info() const;
  Metrics metrics() const;
  // Turns the measuring of callback times on or off. It costs two clock readings a callback.
  void measure_callbacks(bool on);
  bool is_measuring_callbacks() const;
  // Turns the measuring of the time in waits, and outside of them, on or off. It costs two clock
  // readings a turn.
  void measure_waits(bool on);
  bool is_measuring_waits() const;
  // Returns the callback that is running, if callbacks are measured and it began after measuring
  // was turned on. Any thread, if any thread may read LoopOptions::clock.
  std::optional<RunningCallback> running_callback() const;
  // Allocates room for descriptors below the number `fds`, and for `timers` timers, so that
  // starting them cannot run out of memory. False when memory runs out.
  bool reserve(std::size_t fds, std::size_t timers);

  using NodeLoop::stop;  // For nodes; the stop() of this class would hide it.

 protected:
  friend class Timer;  // Its most frequent calls are inline.

  Loop() = default;
  bool is_mine() const;  // True if the calling thread may use the loop.
  // begin_post() returns the place in which to construct the calling thread's next task; end_post()
  // publishes it.
  struct PostPlace {
    Job* task;
    void* lane;
  };
  PostPlace begin_post();
  void end_post(PostPlace place);

  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept;

  Nanos now_{0};
  std::size_t parked_timers_ = 0;  // Timers that are stopped and still linked.
};

}  // namespace spate
