// FileCall: one operation of a File or on a path. FileQueue: the operations of one File, in order.
//
// The work and its result are in a FileBody that the loop's thread and the pool's thread share. A
// cancelled operation leaves it to the pool's thread. The callback stays on the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/ownership.h"
#include "core/user_code.h"
#include "file/file_work.h"
#include "spate/assert.h"
#include "spate/error.h"
#include "spate/file.h"
#include "spate/function.h"
#include "spate/loop.h"
#include "spate/offload.h"
#include "spate/timer.h"
#include "sys/process.h"

namespace spate {

class FileCall {
 public:
  FileCall(const FileCall&) = delete;
  FileCall& operator=(const FileCall&) = delete;
  virtual ~FileCall() = default;

  // Passes the operation to the queue of its File, or to a new queue that it keeps.
  void start(FileQueue& queue);
  void start(std::unique_ptr<FileQueue, FileQueueEnd> queue);

 protected:
  FileCall(Loop& loop, Nanos timeout);

  // Cancels. Called by the destructors of the derived classes.
  void leave();
  // Passes the work to the pool.
  virtual Result<Offloading> begin(Loop& loop, ThreadPool& pool, Job ended) = 0;
  virtual void cancel_work() = 0;
  // Calls the callback with the result of the work, or with `failure`. It may destroy this.
  virtual void report(std::error_code failure) = 0;

 private:
  friend FileQueue;

  void finish();
  // Called when the queue, the loop or the process is not the operation's any more.
  void detach();
  // Reports a failure from the loop.
  void fail(std::error_code error);
  void on_timer();

  const Nanos timeout_;
  std::error_code failure_ = Error::deadline;  // The reason for which the timer expires.
  Timer timer_;
  FileQueue* queue_ = nullptr;  // While the operation is in it.
  std::unique_ptr<FileQueue, FileQueueEnd> own_;
};

class FileQueue {
 public:
  FileQueue(Loop& loop, ThreadPool& pool) : loop_(loop), pool_(pool) {}
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;
  ~FileQueue();

  Loop& loop() const { return loop_; }
  void add(FileCall& call);
  void remove(FileCall& call);

 private:
  // Receives the end of a job. Destroyed uncalled if the job is lost: with the loop, or in a fork.
  class End;

  void start_next();
  void on_end();
  void on_loss();
  void detach_all();

  Loop& loop_;
  ThreadPool& pool_;
  std::deque<FileCall*> waiting_;
  FileCall* running_ = nullptr;  // nullptr also if the running operation was cancelled.
  bool is_busy_ = false;
  Offloading job_;
  std::uint64_t process_ = sys::fork_generation();
};

// Converts an error to the argument of a callback.
template <class T>
T failed(std::error_code error) {
  if constexpr (std::is_same_v<T, std::error_code>) {
    return error;
  } else {
    return std::unexpected(error);
  }
}

template <class T>
class FileCallOf final : public FileCall {
 public:
  using Work = Function<T(const Cancelled&)>;
  using Done = Function<void(T)>;

  FileCallOf(Loop& loop, Nanos timeout, Work work, Done done)
      : FileCall(loop, timeout), done_(std::move(done)) {
    body_->work = std::move(work);
  }
  ~FileCallOf() override { leave(); }

 private:
  struct Body {
    Work work;
    std::optional<T> result;
    Cancelled is_cancelled{false};

    void run() {
      if (!is_cancelled) result.emplace(work(is_cancelled));
      work = nullptr;
    }
  };

  Result<Offloading> begin(Loop& loop, ThreadPool& pool, Job ended) override {
    return pool.start(loop, [body = body_] { body->run(); }, std::move(ended));
  }
  // Leaves the work to the thread that performs it.
  void cancel_work() override {
    if (const std::shared_ptr<Body> body = std::move(body_)) body->is_cancelled = true;
  }
  void report(std::error_code failure) override {
    Done done = std::move(done_);
    const std::shared_ptr<Body> body = std::move(body_);
    call_user("File", [&] { done(failure ? failed<T>(failure) : *std::move(body->result)); });
  }

  std::shared_ptr<Body> body_ = std::make_shared<Body>();
  Done done_;
};

inline std::unique_ptr<FileQueue, FileQueueEnd> make_file_queue(Loop& loop, ThreadPool& pool) {
  return std::unique_ptr<FileQueue, FileQueueEnd>(new FileQueue(loop, pool));
}

// Starts an operation that belongs to no File.
template <class T, class Options, class Work, class Done>
FileOperation start_file_call(Loop& loop, const Options& options, Work work, Done done) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  auto* call = new FileCallOf<T>(loop, options.timeout, std::move(work), std::move(done));
  call->start(make_file_queue(loop, *options.pool));
  return FileOperation(call);
}

}  // namespace spate
