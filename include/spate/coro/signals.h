// Signals: those that the process has received, one after the other.
//
//   coro::Signals signals(loop);
//   must(signals.add(SIGTERM));
//   must(signals.add(SIGHUP));
//   for (;;) {
//     const int signum = co_await signals.next();
//     if (signum == SIGTERM) break;
//     read_configuration();
//   }
//
// Ownership: the program's; it must outlive those who wait. It does not move.
// Threads: the loop's thread only.
// A signal that comes while nobody waits is noted for the next one who does; the same one again is
// merged with it, as by spate::Signal (signal.h). Any number of coroutines may wait; each signal is
// one's, first come, first served. They keep the loop alive; the Signals do not.
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>

#include "spate/coro/scope.h"
#include "spate/coro/turns.h"
#include "spate/signal.h"

namespace spate::coro {

class SPATE_EXPORT Signals {
 public:
  class Next;

  explicit Signals(Loop& loop);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  // From now on `signum` is caught. Errors: those of Signal::start().
  std::error_code add(int signum);
  // co_await: the number of a signal that has come; of several, the lowest.
  inline Next next();

 private:
  struct Added;

  void on_signal(Signal& signal);
  std::size_t count() const;
  int take();

  Loop& loop_;
  std::unique_ptr<Added> added_;  // The newest, which has the one before.
  std::uint64_t came_ = 0;        // The bit signum - 1 of each.
  Turns turns_;
};

// What next() gives to co_await.
class SPATE_EXPORT Signals::Next : public Operation<Next> {
 public:
  explicit Next(Signals& signals) : signals_(signals) {}
  ~Next() { cancel(); }

  bool await_ready() const { return signals_.turns_.leaves_one(signals_.count()); }
  bool start(Promise& chain, Then then);
  void cancel();
  int await_resume();

 private:
  void let_go();

  Signals& signals_;
  Then then_;
};

inline Signals::Next Signals::next() { return Next(*this); }

}  // namespace spate::coro
