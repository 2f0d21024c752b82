#include "core/errands.h"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "core/loop_core.h"
#include "core/user_code.h"
#include "sys/descriptor.h"

namespace spate {

// What they have in common: their place in the loop's list.
class Errands::Errand : public Internal {
 public:
  explicit Errand(Errands& errands) : errands_(errands), next_(errands.first_) {
    if (next_ != nullptr) next_->previous_ = this;
    errands.first_ = this;
  }
  virtual ~Errand() {
    (previous_ == nullptr ? errands_.first_ : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return reallocate(nullptr, bytes);
  }
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* errand) { deallocate(errand); }

 protected:
  LoopCore& loop() { return errands_.loop_; }
  // Has what happens to the node told to this.
  void take(Node& node) {
    node.callback = &LoopCore::internal;
    node.context = static_cast<Internal*>(this);
  }

  Errands& errands_;

 private:
  Errand* next_;
  Errand* previous_ = nullptr;
};

// A descriptor or a timeout.
class Errands::Once final : public Errand {
 public:
  Once(Errands& errands, OnceCallback callback) : Errand(errands), callback_(std::move(callback)) {
    take(io_.head);
    take(timer_.head);
  }
  ~Once() override {
    loop().stop_fd(io_);
    loop().stop_timer(timer_);
  }

  std::error_code start(int fd, Events events, Nanos timeout) {
    io_.fd = fd;
    io_.events = static_cast<std::uint32_t>(events) | kFdIsNew;
    if (!loop().start_fd(io_)) return sys::error_code(-ENOMEM);
    timer_.deadline = deadline_after(loop().now(), timeout).count();
    if (timeout < kForever && !loop().start_timer(timer_)) return sys::error_code(-ENOMEM);
    return {};
  }

  // Both may be queued in one turn: the first that is called takes the other's place away.
  void on_event(Events events) override {
    OnceCallback callback = std::move(callback_);
    delete this;
    call_user("once()", [&] { callback(events); });
  }

 private:
  FdNode io_{};
  TimerNode timer_{};
  OnceCallback callback_;
};

// After a time, or as soon as its turn comes.
class Errands::Later final : public Errand {
 public:
  Later(Errands& errands, Job task) : Errand(errands), task_(std::move(task)) { take(timer_.head); }
  ~Later() override { loop().stop_timer(timer_); }
  static void operator delete(Later* later, std::destroying_delete_t) {
    Slab<Later>& places = later->errands_.places_;
    std::destroy_at(later);
    places.give_back(later);
  }

  bool start(Nanos delay) {
    timer_.deadline = deadline_after(loop().now(), delay).count();
    return loop().start_timer(timer_);
  }
  bool feed() { return loop().feed(timer_.head, Events::custom); }

  void on_event(Events events) override {
    Job task = std::move(task_);
    delete this;
    call_user(any(events & Events::timer) ? "after()" : "defer()", task);
  }

 private:
  TimerNode timer_{};
  Job task_;
};

// Each time that a signal comes.
class Errands::OnSignal final : public Errand {
 public:
  OnSignal(Errands& errands, Job callback) : Errand(errands), callback_(std::move(callback)) {
    take(signal_.head);
  }
  ~OnSignal() override {
    loop().forget_pending(signal_.head);
    if (signal_.head.active != 0) loop().signals().stop(signal_);
  }

  // Past what counts watchers, so that it keeps no loop alive.
  std::error_code start(int signum) {
    signal_.signum = signum;
    return loop().signals().start(signal_);
  }

  void on_event(Events) override { call_user("on_signal()", callback_); }

 private:
  SignalNode signal_{};
  Job callback_;
};

Errands::Errands(LoopCore& loop) : loop_(loop) {}
Errands::~Errands() { clear(); }

std::error_code Errands::once(int fd, Events events, Nanos timeout, OnceCallback callback) {
  if (fd < 0 || !any(events & kIoEvents) || any(events & ~kIoEvents))
    return sys::error_code(-EINVAL);
  Once* once = new (std::nothrow) Once(*this, std::move(callback));
  if (once == nullptr) return sys::error_code(-ENOMEM);
  const std::error_code error = once->start(fd, events, timeout);
  if (error) delete once;
  return error;
}

std::error_code Errands::after(Nanos delay, Job task) {
  if (delay >= kForever) return sys::error_code(-EINVAL);
  Later* later = make_later(std::move(task));
  if (later == nullptr) return sys::error_code(-ENOMEM);
  if (later->start(delay)) return {};
  delete later;
  return sys::error_code(-ENOMEM);
}

bool Errands::defer(Job task) {
  Later* later = make_later(std::move(task));
  if (later == nullptr) return false;
  const bool is_queued = later->feed();
  if (!is_queued) delete later;
  return is_queued;
}

Errands::Later* Errands::make_later(Job task) {
  void* place = places_.take();
  return place == nullptr ? nullptr : new (place) Later(*this, std::move(task));
}

std::error_code Errands::on_signal(int signum, Job callback) {
  OnSignal* errand = new (std::nothrow) OnSignal(*this, std::move(callback));
  if (errand == nullptr) return sys::error_code(-ENOMEM);
  const std::error_code error = errand->start(signum);
  if (error) delete errand;
  return error;
}

void Errands::clear() {
  while (first_ != nullptr) delete first_;
}

}  // namespace spate
