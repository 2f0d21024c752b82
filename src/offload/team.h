// Team: the threads of a ThreadPool and their queue. Mailbox: receives finished tasks.
//
// A task is a list node that moves from the team's queue to its thread, and then to a mailbox. So
// it cannot fail for lack of memory once it was accepted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "spate/async.h"
#include "spate/offload.h"
#include "sys/process.h"
#include "sys/thread.h"

namespace spate {

class Mailbox;

struct Task {
  Job work;
  std::shared_ptr<Mailbox> mailbox;
  OffloadJob* job;        // Receives the result. Loop's thread only.
  bool is_queued = true;  // No thread has begun it. Guarded by the team's lock.
};

using Tasks = std::list<Task>;

// Removes the first of `tasks`, and returns it in a list.
inline Tasks take_first(Tasks& tasks) {
  Tasks first;
  first.splice(first.begin(), tasks, tasks.begin());
  return first;
}

// Shared by a loop and its tasks in progress.
class Mailbox {
 public:
  explicit Mailbox(Async& bell) : wakeup_(&bell) {}

  // False in the child of a fork, where a thread that does not exist may hold the lock.
  bool is_ours() const { return fork_generation_ == sys::fork_generation(); }

  // Any thread. Does nothing after the loop was destroyed.
  void put(Tasks& task) {
    const std::scoped_lock lock(mutex_);
    if (wakeup_ == nullptr) return;
    tasks_.splice(tasks_.end(), task);
    wakeup_->send();
  }
  // ---- the loop's thread
  Tasks take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(tasks_, {});
  }
  // Called when the loop is destroyed. Returns the results that will not be delivered.
  Tasks close() {
    const std::scoped_lock lock(mutex_);
    wakeup_ = nullptr;
    return std::exchange(tasks_, {});
  }

 private:
  const std::uint32_t fork_generation_ = sys::fork_generation();
  std::mutex mutex_;
  Async* wakeup_;  // nullptr after the loop was destroyed.
  Tasks tasks_;
};

// Shared by a ThreadPool and its jobs.
class Team {
 public:
  explicit Team(const ThreadPoolOptions& options) : options_(options) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void enter() { members_.fetch_add(1, std::memory_order_relaxed); }
  void leave() {
    if (members_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // False in the child of a fork, which has none of the threads; the lock may be held for ever.
  bool is_ours() const { return fork_generation_ == sys::fork_generation(); }
  // Returns whether the calling thread is one of these.
  bool is_calling() const { return current_ == this; }

  // Any thread. Takes the single task, unless it fails.
  std::error_code add(Tasks& task);
  // Removes and returns the task if no thread has begun it; otherwise returns an empty list.
  Tasks take_out(Tasks::iterator task);
  // Returns when all tasks are done and the threads have ended.
  void finish();

  unsigned threads() const;
  std::size_t queued() const;

 private:
  static inline thread_local const Team* current_ = nullptr;

  ~Team() = default;
  long start_thread();
  void run();

  const ThreadPoolOptions options_;
  const std::uint32_t fork_generation_ = sys::fork_generation();
  std::atomic<std::size_t> members_{1};  // The pool counts as one.
  mutable std::mutex mutex_;             // Guards the following members.
  std::condition_variable news_;
  Tasks tasks_;
  std::list<sys::Thread> threads_;
  std::size_t idle_ = 0;  // Threads that wait for a task, or will check for one before they wait.
  bool is_finishing_ = false;
};

}  // namespace spate
