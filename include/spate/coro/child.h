// exit_of(): waits until a child process has ended.
//
//   const Result<int> status = co_await coro::exit_of(pid);
//   if (status && WIFEXITED(*status)) ...
//
// As spate::Child (child.h). Cancelling the wait does not affect the process: it can be waited for
// again.
// Threads: the loop's thread only.
#pragma once

#include <optional>
#include <system_error>

#include "spate/child.h"
#include "spate/coro/scope.h"

namespace spate::coro {

// The awaitable of exit_of().
class SPATE_EXPORT ExitOf : public Operation<ExitOf> {
 public:
  explicit ExitOf(int pid) : pid_(pid) {}
  ~ExitOf() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<int> await_resume() const { return outcome_; }

 private:
  void on_exit(Child& child);

  int pid_;
  std::optional<Child> child_;
  Result<int> outcome_ = -1;
  Continuation continuation_;
};

// co_await: returns the status of `pid`, as waitpid() does; the process has been reaped then.
// Errors: those of Child::start(); ECHILD also if other code has taken the status.
inline ExitOf exit_of(int pid) { return ExitOf(pid); }

}  // namespace spate::coro
