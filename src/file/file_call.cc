#include "file/file_call.h"

#include <algorithm>
#include <cerrno>

#include "sys/descriptor.h"

namespace spate {

// ---- one operation

FileCall::FileCall(Loop& loop, Nanos timeout)
    : timeout_(timeout), timer_(loop, bind<&FileCall::on_timer>(this)) {}

void FileCall::leave() {
  if (queue_ != nullptr) queue_->remove(*this);
}

void FileCall::start(FileQueue& queue) {
  queue_ = &queue;
  if (timeout_ > Nanos{0} && !timer_.start(timeout_)) {
    queue_ = nullptr;
    return fail(sys::error_code(-ENOMEM));
  }
  queue.add(*this);
}

void FileCall::start(std::unique_ptr<FileQueue, FileQueueEnd> queue) {
  own_ = std::move(queue);
  start(*own_);
}

void FileCall::finish() {
  queue_ = nullptr;
  timer_.stop();
  report({});
}

void FileCall::detach() {
  queue_ = nullptr;
  timer_.stop();
  cancel_work();
}

// A fed event needs no room among the timers.
void FileCall::fail(std::error_code error) {
  failure_ = error;
  if (!timer_.start(Nanos{0})) timer_.feed(Events::timer);
}

void FileCall::on_timer() {
  if (queue_ != nullptr) queue_->remove(*this);
  own_.reset();
  report(failure_);
}

void FileCallEnd::operator()(FileCall* call) const { delete call; }

// ---- the operations of a File

class FileQueue::End {
 public:
  explicit End(FileQueue& queue) : queue_(&queue) {}
  End(End&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
  End& operator=(End&&) = delete;
  ~End() {
    if (queue_ != nullptr) queue_->on_loss();
  }
  void operator()() { std::exchange(queue_, nullptr)->on_end(); }

 private:
  FileQueue* queue_;
};

FileQueue::~FileQueue() {
  detach_all();
  is_busy_ = false;
  job_.cancel();
}

// In the child of a fork, the earlier operations are the parent's.
void FileQueue::add(FileCall& call) {
  if (process_ != sys::fork_generation()) {
    process_ = sys::fork_generation();
    on_loss();
  }
  waiting_.push_back(&call);
  start_next();
}

void FileQueue::remove(FileCall& call) {
  call.queue_ = nullptr;
  call.cancel_work();
  if (running_ == &call) {
    running_ = nullptr;
  } else {
    std::erase(waiting_, &call);
  }
}

void FileQueue::start_next() {
  while (!is_busy_ && !waiting_.empty()) {
    FileCall& call = *waiting_.front();
    waiting_.pop_front();
    Result<Offloading> begun = call.begin(loop_, pool_, End(*this));
    if (!begun) {
      call.queue_ = nullptr;
      call.fail(begun.error());
      continue;
    }
    job_ = *std::move(begun);
    running_ = &call;
    is_busy_ = true;
  }
}

// The next operation begins before the callback, which may run the loop until that one has ended.
void FileQueue::on_end() {
  is_busy_ = false;
  FileCall* call = std::exchange(running_, nullptr);
  start_next();
  if (call != nullptr) call->finish();  // May destroy this.
}

void FileQueue::on_loss() {
  if (!is_busy_) return;
  is_busy_ = false;
  detach_all();
}

void FileQueue::detach_all() {
  if (running_ != nullptr) std::exchange(running_, nullptr)->detach();
  for (FileCall* call : std::exchange(waiting_, {})) call->detach();
}

void FileQueueEnd::operator()(FileQueue* queue) const { delete queue; }

}  // namespace spate
