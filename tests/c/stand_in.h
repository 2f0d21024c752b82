// Watchers with the interface of those of C++, made of those of C: code in this namespace that
// names Timer gets the one below. So the conformance tests of core are run once more, through C.
// One backend is enough: C's watchers are the same nodes.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "spate/async.h"
#include "spate/c_loop.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "spate/timer.h"
#include "system/kernel_set.h"

#define SPATE_TEST_BACKENDS backends_of_c()

namespace spate::testing {

inline std::vector<std::string_view> backends_of_c() { return {kKernelSet}; }

// Converts an error code of C to C++'s.
inline std::error_code error_of(int code) {
  if (code <= -10'000) return {-code - 10'000, error_category()};
  return {-code, std::system_category()};
}

template <class Self, class Face>
class StandIn {
 public:
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  Loop& loop() const { return from_c(*spate_watcher_loop(&face_.watcher)); }
  bool is_active() const { return spate_is_active(&face_.watcher) != 0; }
  bool is_pending() const { return spate_is_pending(watcher()) != 0; }
  int priority() const { return spate_priority(&face_.watcher); }
  void set_priority(int priority) { EXPECT_EQ(spate_set_priority(watcher(), priority), 0); }
  void set_callback(Delegate<Self> callback) { callback_ = callback; }
  bool feed(Events events = Events::custom) {
    return spate_feed(watcher(), static_cast<std::uint32_t>(events)) == 0;
  }
  Events clear_pending() { return static_cast<Events>(spate_clear_pending(watcher())); }
  void invoke(Events events = Events::custom) {
    spate_invoke(watcher(), static_cast<std::uint32_t>(events));
  }
  void stop() { spate_stop(watcher()); }

  static Self& from(Node& node) { return *static_cast<Self*>(node.context); }

 protected:
  explicit StandIn(Delegate<Self> callback) : callback_(callback) {}
  ~StandIn() { stop(); }

  static void call(spate_loop*, Face* face, std::uint32_t events) {
    auto& self = *static_cast<Self*>(face->watcher.data);
    const Delegate<Self> callback = self.callback_;  // The callback may destroy the watcher.
    callback.thunk()(callback.context(), reinterpret_cast<Node&>(*face),
                     static_cast<Events>(events));
  }
  void* self() { return static_cast<Self*>(this); }
  spate_watcher* watcher() const { return const_cast<spate_watcher*>(&face_.watcher); }

  Face face_;
  Delegate<Self> callback_;
};

class Io : public StandIn<Io, spate_io> {
 public:
  Io(Loop& loop, int fd, Events events, Delegate<Io> callback) : StandIn(callback) {
    spate_io_init(&face_, to_c(loop), call, self());
    if (fd >= 0) set(fd, events);
  }
  Io(Loop& loop, Delegate<Io> callback) : Io(loop, -1, Events::none, callback) {}

  int fd() const { return spate_io_fd(&face_); }
  Events events() const { return static_cast<Events>(spate_io_events(&face_)); }
  void set(int fd, Events events) {
    EXPECT_EQ(spate_io_set(&face_, fd, static_cast<std::uint32_t>(events)), 0);
  }
  void modify(Events events) {
    EXPECT_EQ(spate_io_modify(&face_, static_cast<std::uint32_t>(events)), 0);
  }
  bool start() { return spate_io_start(&face_) == 0; }
  std::error_code start_now() { return error_of(spate_io_start_now(&face_)); }
  void stop_before_close() { spate_io_stop_before_close(&face_); }
  void stop_now() { spate_io_stop_now(&face_); }
  std::error_code error() const { return error_of(spate_io_error(&face_)); }
};

class Timer : public StandIn<Timer, spate_timer> {
 public:
  Timer(Loop& loop, Delegate<Timer> callback) : StandIn(callback) {
    spate_timer_init(&face_, to_c(loop), call, self());
  }

  bool start(Nanos delay) { return start(delay, Nanos{0}); }
  bool start(Nanos delay, Nanos repeat) {
    set_repeat(repeat);
    return restart(delay);
  }
  bool restart(Nanos delay) { return spate_timer_restart(&face_, delay.count()) == 0; }
  bool again() { return spate_timer_again(&face_) == 0; }
  Nanos repeat() const { return Nanos{spate_timer_repeat(&face_)}; }
  void set_repeat(Nanos repeat) { spate_timer_set_repeat(&face_, repeat.count()); }
  Nanos remaining() const { return is_active() ? Nanos{spate_timer_remaining(&face_)} : Nanos{0}; }
  Nanos deadline() const { return Nanos{face_.deadline_}; }
};

class Async : public StandIn<Async, spate_async> {
 public:
  Async(Loop& loop, Delegate<Async> callback) : StandIn(callback) {
    spate_async_init(&face_, to_c(loop), call, self());
  }
  bool start() { return spate_async_start(&face_) == 0; }
  void send() { spate_async_send(&face_); }
  bool is_sent() const { return spate_async_is_sent(&face_) != 0; }
};

class Signal : public StandIn<Signal, spate_signal> {
 public:
  Signal(Loop& loop, Delegate<Signal> callback) : StandIn(callback) {
    spate_signal_init(&face_, to_c(loop), call, self());
  }
  std::error_code start(int signum) {
    stop();
    if (const int code = spate_signal_set(&face_, signum)) return error_of(code);
    return error_of(spate_signal_start(&face_));
  }
  int signum() const { return spate_signal_signum(&face_); }
};

class Child : public StandIn<Child, spate_child> {
 public:
  using Report = spate::Child::Report;

  Child(Loop& loop, Delegate<Child> callback) : StandIn(callback) {
    spate_child_init(&face_, to_c(loop), call, self());
  }
  std::error_code start(int pid, Report report = Report::exit) {
    stop();
    const bool trace = report == Report::exit_stop_continue;
    if (const int code = spate_child_set(&face_, pid, trace)) return error_of(code);
    return error_of(spate_child_start(&face_));
  }
  int pid() const { return spate_child_pid(&face_); }
  int status() const { return spate_child_status(&face_); }
  // The macros of macOS take the address of the status.
  bool exited() const {
    const int all = status();
    return all >= 0 && WIFEXITED(all);
  }
  int exit_code() const {
    const int all = status();
    return WEXITSTATUS(all);
  }
  bool signaled() const {
    const int all = status();
    return all >= 0 && WIFSIGNALED(all);
  }
  int term_signal() const {
    const int all = status();
    return WTERMSIG(all);
  }
  bool stopped() const {
    const int all = status();
    return WIFSTOPPED(all);
  }
  bool continued() const {
    const int all = status();
    return WIFCONTINUED(all);
  }
};

template <class Self, spate_hook_kind kind>
class HookStandIn : public StandIn<Self, spate_hook> {
 public:
  HookStandIn(Loop& loop, Delegate<Self> callback) : StandIn<Self, spate_hook>(callback) {
    spate_hook_init(&this->face_, to_c(loop), kind, this->call, this->self());
  }
  bool start() { return spate_hook_start(&this->face_) == 0; }
};
class Prepare : public HookStandIn<Prepare, SPATE_HOOK_PREPARE> {
 public:
  using HookStandIn::HookStandIn;
};
class Check : public HookStandIn<Check, SPATE_HOOK_CHECK> {
 public:
  using HookStandIn::HookStandIn;
};
class Idle : public HookStandIn<Idle, SPATE_HOOK_IDLE> {
 public:
  using HookStandIn::HookStandIn;
};
class Fork : public HookStandIn<Fork, SPATE_HOOK_FORK> {
 public:
  using HookStandIn::HookStandIn;
};
class Cleanup : public HookStandIn<Cleanup, SPATE_HOOK_CLEANUP> {
 public:
  using HookStandIn::HookStandIn;
};

class Periodic : public StandIn<Periodic, spate_periodic> {
 public:
  Periodic(Loop& loop, Delegate<Periodic> callback) : StandIn(callback) {
    spate_periodic_init(&face_, to_c(loop), call, self());
  }
  bool start_at(WallTime at) { return start_with(at.time_since_epoch().count(), 0, nullptr); }
  bool start_every(Nanos interval, Nanos offset = Nanos{0}) {
    return start_with(offset.count(), interval.count(), nullptr);
  }
  bool reschedule_with(PeriodicNode::Reschedule next, void* context = nullptr) {
    stop();
    next_ = next;
    context_ = context;
    return start_with(0, 0, ask);
  }
  WallTime at() const { return WallTime{Nanos{spate_periodic_at(&face_)}}; }

 private:
  static std::int64_t ask(spate_periodic* periodic, std::int64_t now) {
    const auto& self = *static_cast<Periodic*>(periodic->watcher.data);
    return self.next_(self.context_, WallTime{Nanos{now}}).time_since_epoch().count();
  }
  bool start_with(std::int64_t offset, std::int64_t interval, spate_reschedule_fn* reschedule) {
    stop();
    EXPECT_EQ(spate_periodic_set(&face_, offset, interval, reschedule), 0);
    return spate_periodic_start(&face_) == 0;
  }

  PeriodicNode::Reschedule next_ = nullptr;
  void* context_ = nullptr;
};

class Stat : public StandIn<Stat, spate_stat> {
 public:
  static constexpr Nanos kDefaultInterval = spate::Stat::kDefaultInterval;
  static constexpr Nanos kMinInterval = spate::Stat::kMinInterval;

  Stat(Loop& loop, Delegate<Stat> callback) : StandIn(callback) {
    spate_stat_init(&face_, to_c(loop), call, self());
  }
  std::error_code start(std::string_view path, const StatOptions& options = {}) {
    stop();
    path_ = path;
    if (path_.find('\0') != path_.npos) path_.clear();  // C's path ends at the NUL.
    const std::int64_t interval = options.interval.count();
    if (const int code = spate_stat_set(&face_, path_.c_str(), interval)) return error_of(code);
    spate_stat_set_follow_links(&face_, options.follow_links);
    return error_of(spate_stat_start(&face_));
  }
  const std::string& path() const { return path_; }
  Nanos interval() const { return Nanos{spate_stat_interval(&face_)}; }
  const FileStatus& current() const {
    return reinterpret_cast<const FileStatus&>(*spate_stat_current(&face_));
  }
  const FileStatus& previous() const {
    return reinterpret_cast<const FileStatus&>(*spate_stat_previous(&face_));
  }
  void refresh() { spate_stat_refresh(&face_); }

 private:
  std::string path_;
};

}  // namespace spate::testing
