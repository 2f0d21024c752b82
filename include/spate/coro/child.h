// exit_of(): until a child process has ended.
//
//   const Result<int> status = co_await coro::exit_of(pid);
//   if (status && WIFEXITED(*status)) ...
//
// As spate::Child (child.h). A wait that is given up leaves the process as it is: it can be waited
// for once more.
// Threads: the loop's thread only.
#pragma once

#include <optional>
#include <system_error>

#include "spate/child.h"
#include "spate/coro/scope.h"

namespace spate::coro {

// What exit_of() gives to co_await.
class SPATE_EXPORT ExitOf : public Operation<ExitOf> {
 public:
  explicit ExitOf(int pid) : pid_(pid) {}
  ~ExitOf() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& chain, Then then);
  void cancel();
  Result<int> await_resume() const { return outcome_; }

 private:
  void on_exit(Child& child);

  int pid_;
  std::optional<Child> child_;
  Result<int> outcome_ = -1;
  Then then_;
};

// co_await: the status of `pid`, as waitpid() gives it; the process has been reaped then. Errors:
// those of Child::start(); ECHILD also if other code has taken the status.
inline ExitOf exit_of(int pid) { return ExitOf(pid); }

}  // namespace spate::coro
