// Fault injection: each wrapper of a system call (src/sys) and of allocation first asks here
// whether the call must fail.
//
// In a release build injected() is the constant 0, and the checks are compiled out. With
// SPATE_FAULTS, as in test builds, the installed FaultPlan decides. Plans are consulted from
// several threads, and changed only before they are installed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace spate {

// One name for each kind of system call and allocation.
enum class SystemCall : std::uint8_t {
  epoll_create,
  epoll_ctl,
  epoll_wait,
  kqueue,
  kevent_change,
  kevent_wait,
  poll,
  select,
  io_uring_setup,
  io_uring_enter,
  map,
  eventfd,
  read,
  write,
  timerfd_create,
  timerfd_settime,
  inotify_init,
  inotify_add_watch,
  lstat,
  open,
  pidfd_open,
  waitid,
  sigaction,
  socket,
  bind,
  listen,
  accept,
  connect,
  receive,
  send,
  send_file,
  duplicate,
  shutdown,
  socket_option,
  pipe,
  spawn,
  random,
  file_read,
  read_at_once,
  file_write,
  sync,
  truncate,
  rename,
  unlink,
  allocate,
};
inline constexpr int kCalls = static_cast<int>(SystemCall::allocate) + 1;

#ifdef SPATE_FAULTS

class FaultPlan {
 public:
  // Makes the calls number `nth` (from 1) to `nth + times - 1` after installation fail with
  // `error`.
  FaultPlan& fail_nth(SystemCall call, std::uint64_t nth, int error, std::uint64_t times = 1);
  // Makes each call fail with probability `share` (0 ... 1), decided by `seed` and the call's
  // number alone.
  FaultPlan& fail_share(SystemCall call, double share, int error, std::uint64_t seed);
  // With probability `share`, limits a call that moves bytes to at most `max` of them.
  FaultPlan& shorten_share(SystemCall call, double share, std::size_t max, std::uint64_t seed);

  // Calls `what` just before call number `nth`: to provoke a race.
  FaultPlan& before_nth(SystemCall call, std::uint64_t nth, std::function<void()> what);

  // Return how often the call was made, and how often it failed by this plan, since installation.
  std::uint64_t calls(SystemCall call) const { return calls_[index(call)].load(); }
  std::uint64_t failures(SystemCall call) const { return failures_[index(call)].load(); }

  int decide(SystemCall call);
  std::size_t shorten(SystemCall call, std::size_t size);

 private:
  struct Rule {
    SystemCall call;
    int error;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t threshold = 0;  // Out of 2^64; 0 for a rule by number.
    std::uint64_t seed = 0;
    std::size_t max = 0;  // Nonzero: the call is shortened, and does not fail.
  };
  static bool falls_on(const Rule& rule, std::uint64_t number);
  static std::size_t index(SystemCall call) { return static_cast<std::size_t>(call); }

  struct Moment {
    SystemCall call;
    std::uint64_t number;
    std::function<void()> what;
  };

  std::vector<Rule> rules_;
  std::vector<Moment> moments_;
  std::atomic<std::uint64_t> calls_[kCalls] = {};
  std::atomic<std::uint64_t> failures_[kCalls] = {};
};

// Installs a plan for the whole process during its lifetime. At most one at a time. The destructor
// waits for threads that are asking the plan at that moment: the plan may be destroyed next.
class FaultScope {
 public:
  explicit FaultScope(FaultPlan& plan);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;

 private:
  const int asking_before_;  // In the child of a fork: the parent's threads, which are not there.
};

extern std::atomic<FaultPlan*> installed_plan;
int ask_installed(SystemCall call);
std::size_t ask_installed(SystemCall call, std::size_t size);

// Returns the errno with which this call must fail, or 0.
inline int injected(SystemCall call) {
  return installed_plan.load(std::memory_order_relaxed) == nullptr ? 0 : ask_installed(call);
}

// Returns how many of `size` bytes a call may move that injected() has allowed.
inline std::size_t shortened(SystemCall call, std::size_t size) {
  return installed_plan.load(std::memory_order_relaxed) == nullptr ? size
                                                                   : ask_installed(call, size);
}

#else

constexpr int injected(SystemCall) { return 0; }
constexpr std::size_t shortened(SystemCall, std::size_t size) { return size; }

#endif

}  // namespace spate
