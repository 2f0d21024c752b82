// Watch: reports which files of a directory tree change, to a coroutine.
//
//   coro::Watch watch = must(coro::Watch::start(loop, "/etc/app"));
//   for (;;) {
//     const auto events = co_await coro::or_return(watch.next());
//     for (const WatchEvent& event : events) print(event);
//   }
//
// Ownership: a handle, as spate::Watch. No coroutine may be waiting when it is destroyed; it may be
// moved meanwhile.
// Threads: the loop's thread only.
// At most one coroutine waits at a time. While none waits, the kernel queues the events, and the
// Watch does not keep the loop alive; see spate::Watch::pause(). A cancelled wait loses nothing.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/watch.h"

namespace spate::coro {

class SPATE_EXPORT Watch {
 public:
  class Next;

  // Parameters and errors: those of spate::Watch::start().
  static Result<Watch> start(Loop& loop, std::string_view path, const WatchOptions& options = {});

  Watch(Watch&& other) noexcept;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();

  // co_await: returns events, at least one. They are valid until the next call of next(). The first
  // event is Change::ready, or comes before it. An error means that the watch has ended (OnWatch,
  // watch.h); every later call returns it as well.
  Next next();
  // Returns the absolute path of the root; empty if the watch has ended.
  std::string_view root() const;

 private:
  class State;

  explicit Watch(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// The awaitable of next().
class SPATE_EXPORT Watch::Next : public Operation<Next> {
 public:
  explicit Next(State& state) : state_(state) {}
  ~Next() { cancel(); }

  bool await_ready() const;
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<std::span<const WatchEvent>> await_resume();

 private:
  State& state_;
  Continuation continuation_;
};

}  // namespace spate::coro
