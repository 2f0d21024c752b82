#include "offload/team.h"

#include "core/user_code.h"
#include "sys/descriptor.h"

namespace spate {

std::error_code Team::add(Tasks& task) {
  const std::scoped_lock lock(mutex_);
  if (tasks_.size() >= idle_ && threads_.size() < options_.max_threads) {
    const long result = start_thread();
    if (threads_.empty()) return sys::error_code(result);
  }
  if (tasks_.size() >= idle_ && tasks_.size() - idle_ >= options_.max_queued)
    return Error::queue_full;
  tasks_.splice(tasks_.end(), task);
  news_.notify_one();
  return {};
}

Tasks Team::take_out(Tasks::iterator task) {
  Tasks taken;
  const std::scoped_lock lock(mutex_);
  if (task->is_queued) taken.splice(taken.begin(), tasks_, task);
  return taken;
}

void Team::finish() {
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  news_.notify_all();
  lock.unlock();
  for (sys::Thread& thread : threads_) thread.join();
}

unsigned Team::threads() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<unsigned>(threads_.size());
}

std::size_t Team::queued() const {
  const std::scoped_lock lock(mutex_);
  return tasks_.size();
}

long Team::start_thread() {
  sys::Thread& thread = threads_.emplace_back();
  const std::string name = options_.name + '/' + std::to_string(threads_.size() - 1);
  const long result = thread.start([](void* team) { static_cast<Team*>(team)->run(); }, this);
  if (result < 0) return threads_.pop_back(), result;
  thread.set_name(name);
  ++idle_;
  return 0;
}

void Team::run() {
  current_ = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    news_.wait(lock, [this] { return !tasks_.empty() || is_finishing_; });
    if (tasks_.empty()) return;
    --idle_;
    Tasks one = take_first(tasks_);
    Task& task = one.front();
    task.is_queued = false;
    lock.unlock();
    call_user("offload()", task.work);
    task.work = {};
    std::shared_ptr<Mailbox>(task.mailbox)->put(one);  // The loop may destroy the task now.
    one.clear();
    lock.lock();
    ++idle_;
  }
}

}  // namespace spate
