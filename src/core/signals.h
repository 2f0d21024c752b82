// Signals: the signals that one loop watches, and a process-wide table of the loops that watch each
// signal.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>

#include "core/signal_copies.h"
#include "spate/signal.h"
#include "sys/signal.h"

namespace spate {

class LoopCore;
class Wakeup;

class Signals {
 public:
  Signals(LoopCore& loop, Wakeup& wakeup) : loop_(loop), wakeup_(wakeup) {}
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  std::error_code start(SignalNode& node);
  void stop(SignalNode& node);
  void stop_all();
  // Called in the child of a fork.
  void forget_raised() { raised_.store(0); }

  // Returns whether collect() has anything to do.
  bool has_raised() const { return raised_.load() != 0; }
  // Feeds the watchers of raised signals.
  void collect();

  template <class F>
  void for_each(const F& show) const {
    for (const SignalNode* node : watchers_) {
      for (; node != nullptr; node = node->next) show(*node);
    }
  }

  // Called in a signal handler.
  void raise(int signum) noexcept;

  // Returns the wake-up for the handler.
  const Wakeup& wakeup() const { return wakeup_; }

  static constexpr int kMaxSignal = 64;
  // Returns false for numbers that are no signals, and for signals that cannot be caught.
  static bool may_watch(int signum) {
    return signum >= 1 && signum <= kMaxSignal && signum != SIGKILL && signum != SIGSTOP;
  }
  static constexpr int kMaxLoops = 16;

  // The process-wide state of one signal. The handler reads `loops` only; the rest is guarded by a
  // lock.
  struct Disposition {
    std::atomic<Signals*> loops[kMaxLoops];
    int users;
    struct sigaction found;           // The previous disposition.
    std::atomic<SignalHandler> next;  // Its handler, if that is another copy's.
  };
  static Disposition dispositions[kMaxSignal + 1];

 private:
  LoopCore& loop_;
  Wakeup& wakeup_;
  std::atomic<std::uint64_t> raised_{0};  // Bit signum - 1.
  SignalNode* watchers_[kMaxSignal + 1] = {};
};

}  // namespace spate
