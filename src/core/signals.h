// Signals: the signals that one loop watches, over a table of the whole process that says which
// loops watch which.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>

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
  // In the child of a fork.
  void forget_raised() { raised_.store(0); }

  // Whether collect() has anything to do.
  bool has_raised() const { return raised_.load() != 0; }
  // Feeds the watchers of what was raised.
  void collect();

  // In a signal handler.
  void raise(int signum) noexcept;

  // Who is to be woken.
  const Wakeup& wakeup() const { return wakeup_; }

  static constexpr int kMaxSignal = 64;
  static constexpr int kMaxLoops = 16;

  // What the process does with one signal. The handler reads `loops` only; the rest is under a
  // guard.
  struct Disposition {
    std::atomic<Signals*> loops[kMaxLoops];
    int users;
    struct sigaction found;  // What was there before us.
  };
  static Disposition dispositions[kMaxSignal + 1];

 private:
  LoopCore& loop_;
  Wakeup& wakeup_;
  std::atomic<std::uint64_t> raised_{0};  // Bit signum - 1.
  SignalNode* watchers_[kMaxSignal + 1] = {};
};

}  // namespace spate
