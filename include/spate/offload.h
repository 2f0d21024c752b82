// offload(): has a thread of a pool do what would keep the loop waiting, and comes back to the loop
// with what came of it.
//
// Ownership: the Offloading that is returned stands for the job; destroying it means that `done` is
// not called. A job that no thread has begun is taken out then, and destroyed; one that has begun
// runs on to its end. The loop may be destroyed first: that does the same to its jobs. While a job
// has an Offloading, it keeps its loop alive until `done` is called.
// Threads: offload() and the Offloading are for the loop's thread only. `work` is called on a
// thread of the pool, in which all signals are blocked, and destroyed there when it has returned;
// `done` is called, and destroyed, on the loop's.
// Callbacks: `done` is called once, from the loop and never from inside offload(). Everything is
// allowed inside, destroying the Offloading included. In `work`, what any thread may do.
//
// Jobs are begun in the order in which they were given to the pool; their ends come as they come.
// After a fork, the jobs are the parent's: in the child nobody is called for them, and from the
// first turn after Loop::after_fork() on they keep no loop alive. The pool makes new threads there.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/loop.h"

namespace spate {

class OffloadJob;
class Team;

// Ends a job. In the library, so that programs may be compiled with RTTI and it without.
struct SPATE_EXPORT OffloadJobEnd {
  void operator()(OffloadJob* job) const;
};

class [[nodiscard]] Offloading {
 public:
  Offloading() = default;
  explicit Offloading(OffloadJob* job) : job_(job) {}

  // Nobody is called any more.
  void cancel() { job_.reset(); }

 private:
  std::unique_ptr<OffloadJob, OffloadJobEnd> job_;
};

struct ThreadPoolOptions {
  unsigned max_threads = 4;           // One at least; each is made when it is first needed.
  std::size_t max_queued = SIZE_MAX;  // Jobs that may wait for a thread.
  std::string name = "spate-pool";    // Threads are called name/0, name/1, ...; cut to what the
                                      // system takes.
};

// Threads that do the work of any number of loops. Any thread may use it, but for destroying it.
class SPATE_EXPORT ThreadPool {
 public:
  // The process's own, with the options as they are by default. Made when it is first asked for,
  // and never destroyed: a process that ends does not wait for its jobs.
  static ThreadPool& shared();

  explicit ThreadPool(const ThreadPoolOptions& options = {});
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Waits for all jobs that it has been given and that nobody has cancelled. Not from inside one,
  // which would wait for itself: that is asserted.
  ~ThreadPool();

  // Threads there are, and jobs that none of them has begun.
  unsigned threads() const;
  std::size_t queued() const;

  // What offload() does, with nothing to hand over.
  Result<Offloading> start(Loop& loop, Job work, Job done);

 private:
  Team* team() const;
  Team* make_team();

  const ThreadPoolOptions options_;
  std::atomic<Team*> team_{nullptr};  // A child of a fork has another one.
};

// Calls `work()` on a thread of the pool, and then `done(what it returned)`, or `done()` if that is
// nothing. Errors, with which nothing is done: Error::queue_full when `max_queued` jobs wait
// already; EAGAIN when the system gives the pool not one thread; Error::loop_forked; ENOMEM.
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
        loop, [work = std::move(work), value]() mutable { value->emplace(std::invoke(work)); },
        [done = std::move(done), value]() mutable { std::invoke(done, std::move(**value)); });
  }
}

}  // namespace spate
