// Signals: the signal events of one base.
//
// Semantics: event2/event.h (evsignal_*); probed: how often a callback is called, which base gets a
// signal, and the treatment of the program's own handlers.
//
// One base at a time owns the signals of the process: the one that a signal was last added to, or
// whose loop was last entered with signals added. Raised signals are counted for the owner, and a
// callback is called as often as its signal was raised.
#pragma once

#include <atomic>
#include <csignal>

#include "compat/libevent/event/event_layout.h"
#include "spate/loop.h"

namespace spate::libevent {

class Signals {
 public:
  Signals() = default;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Restores the program's own handlers.
  ~Signals();

  // Sets the loop that a raised signal wakes. Must precede the first add().
  void set_loop(Loop& loop) { loop_ = &loop; }

  // Returns false if the kernel refuses, or memory runs out.
  [[nodiscard]] bool add(event& ev);
  void remove(event& ev);
  // The loop is entered.
  void claim();

  bool has_raised() const { return has_raised_.load(std::memory_order_relaxed); }
  // Calls `activate(event, raises)` for all events of the signals raised.
  template <class F>
  void collect(const F& activate);
  void forget_raised();

  event* first(int number) const {
    return number >= 0 && number < kSignals ? events_[number] : nullptr;
  }

  static constexpr int kSignals = NSIG;

 private:
  static void on_signal(int number);
  [[nodiscard]] bool install(int number);
  void restore(int number);
  void become_owner();

  Loop* loop_ = nullptr;
  int handled_ = 0;                            // The number of signals that have events here.
  event* events_[kSignals] = {};               // The newest first.
  struct sigaction* replaced_[kSignals] = {};  // The program's handlers.
  std::atomic<int> raised_[kSignals];          // Since the last collect().
  std::atomic<bool> has_raised_{false};
};

template <class F>
void Signals::collect(const F& activate) {
  has_raised_.store(false);
  for (int number = 0; number < kSignals; ++number) {
    const int raises = raised_[number].exchange(0);
    if (raises == 0) continue;
    for (event* ev = events_[number]; ev != nullptr; ev = links(*ev).next) activate(*ev, raises);
  }
}

}  // namespace spate::libevent
