// offload(): runs blocking work on a thread pool, and passes the result back to the loop.
//
// Ownership: the returned Offloading is the job's handle; destroying it cancels `done`. A job that
// has not begun is then removed and destroyed; one that has begun runs to its end. Destroying the
// loop has the same effect. Until `done` is called, a job with an Offloading keeps its loop alive.
// Threads: offload() and the Offloading on the loop's thread only. `work` is called and destroyed
// on a thread of the pool, with all signals blocked; `done` is called and destroyed on the loop's
// thread.
// Callbacks: `done` is called once, from the loop and never from inside offload(). Inside it
// everything is allowed, destroying the Offloading included. `work` may do what any other thread
// may do.
//
// Jobs begin in the order in which they were passed to the pool, and may end in any order. After a
// fork the jobs are the parent's: in the child `done` is not called, and from the first turn after
// Loop::after_fork() they keep no loop alive. The pool makes new threads there.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/invoke.h"
#include "spate/loop.h"

namespace spate {

class OffloadJob;
class Team;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT OffloadJobEnd {
  void operator()(OffloadJob* job) const;
};

class [[nodiscard]] Offloading {
 public:
  Offloading() = default;
  explicit Offloading(OffloadJob* job) : job_(job) {}

  // Prevents the call of `done`.
  void cancel() { job_.reset(); }

 private:
  std::unique_ptr<OffloadJob, OffloadJobEnd> job_;
};

struct ThreadPoolOptions {
  unsigned max_threads = 4;           // At least 1; threads are started when needed.
  std::size_t max_queued = SIZE_MAX;  // Jobs that may wait for a thread.
  std::string name = "spate-pool";    // Threads are named name/0, name/1, ..., truncated to the
                                      // system's limit.
};

// A pool of threads for the work of any number of loops. Thread-safe, except for the destructor.
class SPATE_EXPORT ThreadPool {
 public:
  // Returns the process-wide pool, which has default options. It is made at the first call and
  // never destroyed: a process that exits does not wait for its jobs.
  static ThreadPool& shared();

  explicit ThreadPool(const ThreadPoolOptions& options = {});
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Waits for all jobs that were not cancelled. Must not be called inside a job, which would wait
  // for itself (asserted in every build).
  ~ThreadPool();

  // Return the number of running threads, and of jobs that have not begun.
  unsigned threads() const;
  std::size_t queued() const;

  // As offload(), without a result.
  Result<Offloading> start(Loop& loop, Job work, Job done);

 private:
  Team* team() const;
  Team* make_team();

  const ThreadPoolOptions options_;
  std::atomic<Team*> team_{nullptr};  // A child of a fork makes its own.
};

// Calls `work()` on a thread of the pool, then `done(result)` on the loop, or `done()` if `work`
// returns void. On an error nothing is called. Errors: Error::queue_full when `max_queued` jobs
// wait; EAGAIN when the pool cannot start its first thread; Error::loop_forked; ENOMEM.
template <class Work, class Done>
  requires std::invocable<Work&>
Result<Offloading> offload(Loop& loop, Work work, Done done,
                           ThreadPool& pool = ThreadPool::shared()) {
  using Value = std::decay_t<std::invoke_result_t<Work&>>;
  if constexpr (std::is_void_v<Value>) {
    return pool.start(loop, Job(std::move(work)), Job(std::move(done)));
  } else {
    auto value = std::make_shared<std::optional<Value>>();
    return pool.start(
        loop, [work = std::move(work), value]() mutable { value->emplace(invoke_callable(work)); },
        [done = std::move(done), value]() mutable { invoke_callable(done, std::move(**value)); });
  }
}

}  // namespace spate
