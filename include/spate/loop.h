// Loop: waits for events and calls the watchers that asked for them.
//
// Ownership: create() hands out a unique_ptr; the loop owns its backend and no watcher. It must not
// be destroyed from inside one of its callbacks. Watchers still active when it dies are stopped.
//
// Threads: one thread at a time runs a loop, and only that thread touches it and its watchers, with
// three exceptions that any thread may use at any time: post(), wake() and Async::send(). While no
// thread runs the loop, any one thread may use it. Breaking this rule is asserted. Several loops
// live side by side, in one thread or in many.
//
// Inside a callback: everything, nested run() included, except destroying the loop.
//
// One turn of run(), in this order (libev's, with its quirks mended):
//   1. fork hooks, prepare hooks; the kernel is told what changed; the wait; the clock is read
//   2. queued is what is due: io and ended children, timers, signals, async, posts
//   3. idle hooks, if nothing of their priority is queued; check hooks
//   4. called is what is queued, highest priority first, first queued first within one
// All that is queued when the calling begins is called in this turn. What the callbacks themselves
// feed is called too, until LoopOptions::budget of those are spent; the rest waits for the next
// turn, which then does not block. So no class of events can starve another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
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

// A call that a queue owns until it is made.
using Job = std::move_only_function<void()>;
using OnceCallback = std::move_only_function<void(Events)>;

enum class Run {
  until_done,  // Until stop(), or until nothing is left that keeps the loop alive.
  once,        // One turn; waits for an event if none is there.
  no_wait,     // One turn; calls what is ready and never blocks.
};

struct LoopOptions {
  // "epoll", "poll", "select", or "auto", which takes the first of that list that can be had.
  std::string_view backend = "auto";
  // How many of the events that callbacks feed to a turn are still called in it. 1 ... 2^31.
  std::uint32_t budget = 256;
  // Where time comes from; nullptr is system_clock(). Must outlive the loop.
  Clock* clock = nullptr;
  // For so long the loop looks again and again, without sleeping, before it sleeps: what comes
  // meanwhile does not have to wait for this thread to be woken up, and the processor is kept busy.
  // 0 sleeps at once. Not with a Clock of the caller's.
  Nanos busy_poll{0};
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
  // run() nested into it ends with it. What is queued by then is still called; without any time,
  // that is one turn. Errors: as run(); ENOMEM, before anything has been called.
  std::error_code run_for(Nanos span);
  // Whether something is left that keeps the loop alive, or that is queued: run() returned because
  // of stop() or after its one turn, and would go on.
  bool has_work() const;
  // Makes the innermost run() return once the callbacks already queued have been called; a run()
  // nested into it meanwhile returns too. Without effect outside run().
  void stop();
  // The same for all nested runs.
  void stop_all();
  // The loop whose run() this thread is in, the innermost if it is in several; nullptr outside. Any
  // thread.
  static Loop* current();

  // Keeps the loop alive without a watcher, and back. An active watcher whose owner calls unref()
  // once does not keep run() from returning; ref() before stopping it.
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
  // Between the two, loop time stands still: the timers of a process that was stopped do not all
  // expire at once. A loop that runs meanwhile waits for no timer.
  void suspend();
  void resume();

  // ---- from other threads

  // Calls `task` on the loop's thread, in this turn or the next. Every task is called exactly once,
  // one thread's in its own order; the kernel is entered only if the loop sleeps. Any thread, also
  // inside a callback; not in a signal handler. False, and the task destroyed, when memory runs
  // out. Tasks still queued when the loop dies are destroyed uncalled.
  template <class F>
    requires std::is_constructible_v<Job, F&&>
  bool post(F&& task) {
    const PostPlace place = begin_post();
    if (place.task == nullptr) return false;
    new (place.task) Job(std::forward<F>(task));
    end_post(place);
    return true;
  }
  // Makes the loop turn once more if it sleeps, without calling anything. Any thread;
  // async-signal-safe.
  void wake() noexcept;

  // ---- calls that the loop owns until it makes them
  //
  // What cannot be taken back needs no watcher. A callable that was not called when the loop dies
  // is destroyed.

  // Calls `task` once, `delay` from now(), and keeps the loop alive until then; for what may have
  // to be called off there is Timer. Negative counts as zero. Errors: ENOMEM; EINVAL for kForever
  // and more.
  std::error_code after(Nanos delay, Job task);
  // Calls `task` when the callback that is running, and what is queued already, has been called: in
  // this turn, or, when LoopOptions::budget is spent or outside of run(), in the next. Never from
  // inside defer(). From other threads: post(). False, and the task destroyed, when memory runs
  // out.
  bool defer(Job task);
  // Calls `callback` each time that the process has received the signal, as Signal does, as long as
  // the loop lives. Does not keep it alive. Errors: as Signal::start().
  std::error_code on_signal(int signum, Job callback);
  // Calls `callback` once: with what became ready on `fd`, or with Events::timer after `timeout`
  // (kForever: never), whichever is first. Keeps the loop alive until then. A descriptor that the
  // kernel refuses comes with Events::error. Errors: ENOMEM; EINVAL without a descriptor or without
  // an event to wait for.
  std::error_code once(int fd, Events events, Nanos timeout, OnceCallback callback);

  // ---- embedding in another loop

  // A descriptor that is readable when run(Run::no_wait) has something to do. The loop's own: not
  // to be closed, read or kept beyond it; another one after after_fork(). Errors:
  // Error::not_pollable with backends other than epoll; EMFILE, ENFILE, ENOMEM at the first call.
  Result<int> poll_fd();
  // To be called before the outer loop waits: tells the kernel what changed and returns how long
  // the outer loop may wait on poll_fd(): zero, a duration, or kForever. From here until the next
  // run, post() wakes through poll_fd().
  Nanos prepare_to_wait();

  // ---- fork

  // In the child of a fork, before anything else is done with a loop that the child goes on to use.
  // Until it has succeeded run(), poll_fd() and immediate starts answer Error::loop_forked, and the
  // parent's kernel objects are not touched. A loop that another thread was running at the fork is
  // in pieces here, and not to be touched at all. Fork hooks run at the start of the next turn.
  // Children watched in the parent are not the child's: their watchers are stopped. Errors: EMFILE,
  // ENFILE, ENOMEM; the loop can then be told again.
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
  // From the next run() on: the time spent waiting, and the rest of it. They cost two clock
  // readings a turn.
  void measure_waits(bool on);
  // Makes room for so many descriptors (by number) and timers, so that starting them cannot run out
  // of memory. False when it runs out here.
  bool reserve(std::size_t fds, std::size_t timers);

  using NodeLoop::stop;  // The nodes', which that of run() would hide.

 protected:
  Loop() = default;
  bool is_mine() const;  // The calling thread may use it.
  // Where the next task of the calling thread is to be made, and that it has been.
  struct PostPlace {
    Job* task;
    void* lane;
  };
  PostPlace begin_post();
  void end_post(PostPlace place);

  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept;

  Nanos now_{0};
};

}  // namespace spate
