// Signals: waits for signals of the process, one after the other.
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
// Ownership: the program's; it must outlive its waiters. It does not move.
// Threads: the loop's thread only.
// A signal that arrives while no coroutine waits is kept for the next one; further signals of the
// same number are merged with it, as by spate::Signal (signal.h). Any number of coroutines may
// wait, and are served in order, one for each signal. They keep the loop alive; the Signals object
// does not.
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>

#include "spate/coro/extend/reservation_queue.h"
#include "spate/coro/scope.h"
#include "spate/signal.h"

namespace spate::coro {

class SPATE_EXPORT Signals {
 public:
  class Next;

  explicit Signals(Loop& loop);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  // Starts to watch `signum`. Errors: those of Signal::start().
  std::error_code add(int signum);
  // co_await: returns the number of a received signal; the lowest if there are several.
  inline Next next();

 private:
  struct Watched;

  void on_signal(Signal& signal);
  std::size_t count() const;
  int take();

  Loop& loop_;
  std::unique_ptr<Watched> watched_;  // The newest; each links to the one before.
  std::uint64_t received_ = 0;        // Received signals: bit signum - 1 of each.
  ReservationQueue waiters_;
};

// The awaitable of next().
class SPATE_EXPORT Signals::Next : public Operation<Next> {
 public:
  explicit Next(Signals& signals) : signals_(signals) {}
  ~Next() { cancel(); }

  bool await_ready() const { return signals_.waiters_.has_free(signals_.count()); }
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  int await_resume();

 private:
  void unref_loop();

  Signals& signals_;
  Continuation continuation_;
};

inline Signals::Next Signals::next() { return Next(*this); }

}  // namespace spate::coro
