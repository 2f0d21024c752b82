#include "core/one_shots.h"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "core/active_list.h"
#include "core/loop_core.h"
#include "core/user_code.h"
#include "sys/descriptor.h"

namespace spate {

// The base of one-shot calls, which are in the loop's list.
class OneShots::OneShot : public Internal, public Linked<OneShot> {
 public:
  explicit OneShot(OneShots& one_shots) : one_shots_(one_shots) {
    one_shots.all_.push_front(*this);
  }
  virtual ~OneShot() { unlink(); }

  virtual void list_active(ActiveList& list) const = 0;

  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return reallocate(nullptr, bytes);
  }
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* one_shot) { deallocate(one_shot); }

 protected:
  LoopCore& loop() { return one_shots_.loop_; }
  // Makes events of `node` call on_event() of this.
  void take(Node& node) {
    node.callback = &LoopCore::internal;
    node.context = static_cast<Internal*>(this);
  }

  OneShots& one_shots_;
};

// A descriptor with a timeout.
class OneShots::Once final : public OneShot {
 public:
  Once(OneShots& one_shots, OnceCallback callback)
      : OneShot(one_shots), callback_(std::move(callback)) {
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

  void list_active(ActiveList& list) const override {
    ActiveInfo info{.kind = ActiveKind::once, .fd = io_.fd, .count = 0, .id = this};
    if (io_.head.active != 0) ++info.count;
    if (timer_.head.active != 0) ++info.count, info.due = Nanos{timer_.deadline};
    list.add(std::move(info));
  }

  // Both nodes may be queued in one turn: the first that is called removes the other.
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

// A call after a time, or as soon as possible.
class OneShots::Later final : public OneShot {
 public:
  Later(OneShots& one_shots, Job task) : OneShot(one_shots), task_(std::move(task)) {
    take(timer_.head);
  }
  ~Later() override { loop().stop_timer(timer_); }
  static void operator delete(Later* later, std::destroying_delete_t) {
    Slab<Later>& places = later->one_shots_.places_;
    std::destroy_at(later);
    places.give_back(later);
  }

  bool start(Nanos delay) {
    timer_.deadline = deadline_after(loop().now(), delay).count();
    return loop().start_timer(timer_);
  }
  bool feed() { return loop().feed(timer_.head, Events::custom); }

  void list_active(ActiveList& list) const override {
    if (timer_.head.active == 0)
      return list.add({.kind = ActiveKind::deferred, .count = 0, .id = this});
    list.add({.kind = ActiveKind::after, .due = Nanos{timer_.deadline}, .id = this});
  }

  void on_event(Events events) override {
    Job task = std::move(task_);
    delete this;
    call_user(any(events & Events::timer) ? "after()" : "defer()", task);
  }

 private:
  TimerNode timer_{};
  Job task_;
};

// A call for each signal.
class OneShots::OnSignal final : public OneShot {
 public:
  OnSignal(OneShots& one_shots, Job callback) : OneShot(one_shots), callback_(std::move(callback)) {
    take(signal_.head);
  }
  ~OnSignal() override {
    loop().forget_pending(signal_.head);
    if (signal_.head.active != 0) loop().signals().stop(signal_);
  }

  // Starts it without counting, so that it does not keep the loop alive.
  std::error_code start(int signum) {
    signal_.signum = signum;
    return loop().signals().start(signal_);
  }

  void list_active(ActiveList&) const override {}
  void on_event(Events) override { call_user("on_signal()", callback_); }

 private:
  SignalNode signal_{};
  Job callback_;
};

OneShots::OneShots(LoopCore& loop) : loop_(loop) {}
OneShots::~OneShots() { clear(); }

std::error_code OneShots::once(int fd, Events events, Nanos timeout, OnceCallback callback) {
  if (fd < 0 || !any(events & kIoEvents) || any(events & ~kIoEvents))
    return sys::error_code(-EINVAL);
  Once* once = new (std::nothrow) Once(*this, std::move(callback));
  if (once == nullptr) return sys::error_code(-ENOMEM);
  const std::error_code error = once->start(fd, events, timeout);
  if (error) delete once;
  return error;
}

std::error_code OneShots::after(Nanos delay, Job task) {
  if (delay >= kForever) return sys::error_code(-EINVAL);
  Later* later = make_later(std::move(task));
  if (later == nullptr) return sys::error_code(-ENOMEM);
  if (later->start(delay)) return {};
  delete later;
  return sys::error_code(-ENOMEM);
}

bool OneShots::defer(Job task) {
  Later* later = make_later(std::move(task));
  if (later == nullptr) return false;
  const bool is_queued = later->feed();
  if (!is_queued) delete later;
  return is_queued;
}

OneShots::Later* OneShots::make_later(Job task) {
  void* place = places_.take();
  return place == nullptr ? nullptr : new (place) Later(*this, std::move(task));
}

std::error_code OneShots::on_signal(int signum, Job callback) {
  OnSignal* one_shot = new (std::nothrow) OnSignal(*this, std::move(callback));
  if (one_shot == nullptr) return sys::error_code(-ENOMEM);
  const std::error_code error = one_shot->start(signum);
  if (error) delete one_shot;
  return error;
}

void OneShots::list_active(ActiveList& list) const {
  all_.for_each([&](const OneShot& one_shot) { one_shot.list_active(list); });
}

void OneShots::clear() {
  while (OneShot* one_shot = all_.first()) delete one_shot;
}

}  // namespace spate
