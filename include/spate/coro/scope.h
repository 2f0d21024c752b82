// Scope: owns the tasks that are spawned into it.
//
//   coro::Scope sessions(loop);
//   Listener listener = must(listen(loop, address, [&](Stream stream, const Address&) {
//     sessions.spawn(echo(std::move(stream)));
//   }));
//
// Ownership: it owns its tasks. Destroying it cancels them all, as destroying the loop does. It
// does not move. A task may destroy its own scope: it is then cancelled when it next waits.
// Threads: the loop's thread only.
// Inside a task and inside a callback everything is allowed.
#pragma once

#include <cstddef>
#include <optional>
#include <system_error>

#include "spate/coro/task.h"
#include "spate/function.h"
#include "spate/hooks.h"
#include "spate/loop.h"
#include "spate/time.h"
#include "spate/timer.h"

namespace spate::coro {

class SPATE_EXPORT Scope {
 public:
  explicit Scope(Loop& loop);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Loop& loop() const { return queue_.loop(); }

  // Starts `task` now, up to its first wait. Returns false, and destroys the task, when memory ran
  // out, when the scope is stopping or being cancelled, or after the loop was destroyed.
  bool spawn(Task<void> task);
  // As above, for a task that can fail: its error is passed to on_error().
  bool spawn(Task<Result<void>> task);
  // Sets the function that is called with the error of each failed task, after the task was
  // destroyed: from the loop, or from spawn() if it fails at once. Without it, join() returns the
  // first error.
  void on_error(Function<void(std::error_code error)> callback);

  // Resumes all waits with until_stop() (until_stop.h) with ECANCELED, and prevents further spawns.
  // Other waits are not affected.
  void stop();
  bool is_stopping() const { return is_stopping_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Destroys all tasks now, newest first; a running one when it next waits.
  void cancel();

  class Join;
  class JoinWithin;
  // co_await: waits until no task is left. Returns the first error that was not passed to
  // on_error(). Any number of tasks may wait, except those of the scope itself.
  Join join();
  // co_await: calls stop(), then waits as join() for at most `grace`, and cancels the remaining
  // tasks. Returns true if all had ended.
  JoinWithin join(Nanos grace);

 private:
  friend class Promise;
  friend class StopPoint;
  friend class Continuation;
  class Guard;

  // noexcept: an exception ends the program, also if the library was compiled without exceptions.
  bool begin(Promise* root, bool returns_result) noexcept;
  void queue(WaitNode& node) {
    if (node.is_woken()) return;
    woken_.push_woken(node);
    feed();
  }
  void feed() {
    if (!queue_.is_pending()) queue_.feed();
  }
  void call_woken();
  void trigger_stop_points();
  WaitNode* next_woken() const;
  void retire(Promise& root);
  void report(std::error_code error);
  void unlink(Promise& root);
  void end_joins();
  void end_with_loop();

  Promise* newest_ = nullptr;
  WaitList woken_;
  Join* joins_ = nullptr;
  StopPoint* stop_points_ = nullptr;
  Guard* guards_ = nullptr;
  std::size_t size_ = 0;
  std::error_code first_error_;
  Function<void(std::error_code)> on_error_;
  Timer queue_;      // Fed while a coroutine is woken; never started.
  Cleanup cleanup_;  // Called when the loop is destroyed.
  bool is_stopping_ = false;
  bool is_cancelling_ = false;
};

// The awaitable of join().
class SPATE_EXPORT Scope::Join : public Operation<Join> {
 public:
  explicit Join(Scope& scope) : scope_(&scope) {}
  ~Join() { cancel(); }

  bool await_ready() const { return scope_->empty(); }
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Scope;
  friend class JoinWithin;

  Scope* scope_;
  Join* next_ = nullptr;
  Join* previous_ = nullptr;
  bool is_linked_ = false;
  bool has_cancelled_ = false;  // A task of the scope was cancelled during this wait.
  std::error_code error_;
  Continuation continuation_;
};

// The awaitable of join(grace).
class SPATE_EXPORT Scope::JoinWithin : public Operation<JoinWithin> {
 public:
  JoinWithin(Scope& scope, Nanos grace) : join_(scope), scope_(scope), grace_(grace) {}

  bool await_ready() {
    scope_.stop();
    return join_.await_ready();
  }
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  bool await_resume() const { return !join_.has_cancelled_; }

 private:
  void on_timer();

  Join join_;
  Scope& scope_;
  Nanos grace_;
  std::optional<Timer> timer_;
};

inline Scope::Join Scope::join() { return Join(*this); }
inline Scope::JoinWithin Scope::join(Nanos grace) { return JoinWithin(*this, grace); }

// ---- functions of Promise and Continuation that need Scope

inline Loop& Promise::loop() const { return scope_->loop(); }

inline void Promise::resume(Continuation continuation) {
  is_running_ = true;
  run(continuation.select());
}

inline void Promise::resume(Promise& awaiting) {
  is_running_ = true;
  awaiting.handle().resume();
  if (awaiting.has_ended()) [[unlikely]]
    return run(awaiting.next());
  end_run();
}

inline void Promise::run(Promise* next) {
  for (; next != nullptr; next = next->next())
    if (!next->has_ended()) next->handle().resume();
  end_run();
}

inline void Promise::end_run() {
  is_running_ = false;
  if (flags_ != 0) [[unlikely]]
    settle();
}

inline void Continuation::resume() const {
  Promise& its_fiber = fiber();
  if (its_fiber.is_running()) return wake();
  node().unlink();
  its_fiber.resume(*this);
}

inline void Continuation::wake() const {
  Promise& its_fiber = fiber();
  if (its_fiber.is_cancelled()) return node().unlink();  // Waking all must not find it again.
  its_fiber.scope().queue(node());
}

}  // namespace spate::coro
