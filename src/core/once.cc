#include "core/once.h"

#include <cerrno>
#include <new>

#include "core/loop_core.h"
#include "core/user_code.h"

namespace spate {

class OnceList::Entry final : public Internal {
 public:
  Entry(OnceList& list, OnceCallback callback) : list_(list), callback_(std::move(callback)) {
    io_.head.callback = timer_.head.callback = &LoopCore::internal;
    io_.head.context = timer_.head.context = static_cast<Internal*>(this);
    next_ = list.first_;
    if (next_ != nullptr) next_->previous_ = this;
    list.first_ = this;
  }
  ~Entry() {
    stop();
    (previous_ == nullptr ? list_.first_ : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

  std::error_code start(int fd, Events events, Nanos timeout) {
    LoopCore& loop = list_.loop_;
    const std::error_code no_memory{ENOMEM, std::system_category()};
    if (fd >= 0) {
      io_.fd = fd;
      io_.events = static_cast<std::uint32_t>(events) | kFdIsNew;
      if (!loop.start_fd(io_)) return no_memory;
    }
    if (timeout < kForever) {
      timer_.deadline = deadline_after(loop.now(), timeout).count();
      if (!loop.start_timer(timer_)) return no_memory;
    }
    return {};
  }

  // Both may be queued in one turn: the first that is called takes the other's place away.
  void on_event(Events events) override {
    OnceCallback callback = std::move(callback_);
    delete this;
    call_user("once()", [&] { callback(events); });
  }

 private:
  void stop() {
    LoopCore& loop = list_.loop_;
    if (io_.head.active != 0) loop.stop_fd(io_);
    if (timer_.head.active != 0) loop.stop_timer(timer_);
    loop.clear_pending(io_.head);
    loop.clear_pending(timer_.head);
  }

  friend class OnceList;
  OnceList& list_;
  Entry* next_ = nullptr;
  Entry* previous_ = nullptr;
  FdNode io_{};
  TimerNode timer_{};
  OnceCallback callback_;
};

OnceList::~OnceList() { clear(); }

std::error_code OnceList::add(int fd, Events events, Nanos timeout, OnceCallback callback) {
  const bool waits_for_fd = fd >= 0;
  if (waits_for_fd ? !any(events & kIoEvents) || any(events & ~kIoEvents) : timeout >= kForever) {
    return {EINVAL, std::system_category()};
  }
  Entry* entry = new (std::nothrow) Entry(*this, std::move(callback));
  if (entry == nullptr) return {ENOMEM, std::system_category()};
  const std::error_code error = entry->start(fd, events, timeout);
  if (error) delete entry;
  return error;
}

void OnceList::clear() {
  while (first_ != nullptr) delete first_;
}

}  // namespace spate
