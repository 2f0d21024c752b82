// Scope: the tasks that were spawned into it.
//
//   coro::Scope sessions(loop);
//   Listener listener = must(listen(loop, address, [&](Stream stream, const Address&) {
//     sessions.spawn(echo(std::move(stream)));
//   }));
//
// Ownership: it owns its tasks. Destroying it cancels them all, as the loop's end does. It does not
// move. A task may destroy the scope that it is in: it is cancelled when it next waits.
// Threads: the loop's thread only.
// Inside a task and inside a callback: everything.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <system_error>

#include "spate/coro/task.h"
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

  // Starts `task` now, up to its first wait. False, and the task destroyed, when memory has run
  // out, when the scope is stopping or being cancelled, or the loop has ended.
  bool spawn(Task<void> task);
  // The same of one that can fail: its error goes to on_error().
  bool spawn(Task<Result<void>> task);
  // Called with the error of each task that fails, when the task is gone: from the loop, or from
  // spawn() if it fails at once. Without it the first error is what join() gives.
  void on_error(std::move_only_function<void(std::error_code error)> callback);

  // Whoever waits with until_stop() (until_stop.h) goes on with ECANCELED, and nothing can be
  // spawned any more. Nobody else is touched.
  void stop();
  bool is_stopping() const { return is_stopping_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Destroys all tasks now, the newest first; one that runs, when it next waits.
  void cancel();

  class Join;
  class JoinWithin;
  // co_await: until no task is left. Gives the first error that nobody was told of. Any number may
  // wait, but no task of the scope itself.
  Join join();
  // co_await: stop(), then join() for at most `grace`; what is left is cancelled. True: nothing
  // was.
  JoinWithin join(Nanos grace);

 private:
  friend class Promise;
  friend class StopPoint;
  friend class Then;
  class Guard;

  // An exception ends the program, wherever its objects were compiled without them.
  bool begin(Promise* root, bool gives_error) noexcept;
  void queue(Place& place) {
    if (place.is_woken()) return;
    woken_.push_woken(place);
    feed();
  }
  void feed() {
    if (!queue_.is_pending()) queue_.feed();
  }
  void call_woken();
  void give_up_stop_points();
  Place* next_woken() const;
  void retire(Promise& root);
  void tell(std::error_code error);
  void unlink(Promise& root);
  void end_joins();
  void end_with_loop();

  Promise* newest_ = nullptr;
  Line woken_;
  Join* joins_ = nullptr;
  StopPoint* stop_points_ = nullptr;
  Guard* guards_ = nullptr;
  std::size_t size_ = 0;
  std::error_code first_error_;
  std::move_only_function<void(std::error_code)> on_error_;
  Timer queue_;      // Fed while somebody is woken; never started.
  Cleanup cleanup_;  // The loop's end.
  bool is_stopping_ = false;
  bool is_cancelling_ = false;
};

// What join() gives to co_await.
class SPATE_EXPORT Scope::Join : public Operation<Join> {
 public:
  explicit Join(Scope& scope) : scope_(&scope) {}
  ~Join() { cancel(); }

  bool await_ready() const { return scope_->empty(); }
  bool start(Promise& chain, Then then);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Scope;

  Scope* scope_;
  Join* next_ = nullptr;
  Join* previous_ = nullptr;
  bool is_linked_ = false;
  std::error_code error_;
  Then then_;
};

// What join(grace) gives to co_await.
class SPATE_EXPORT Scope::JoinWithin : public Operation<JoinWithin> {
 public:
  JoinWithin(Scope& scope, Nanos grace) : join_(scope), scope_(scope), grace_(grace) {}

  bool await_ready() {
    scope_.stop();
    return join_.await_ready();
  }
  bool start(Promise& chain, Then then);
  void cancel();
  bool await_resume() const { return !is_over_; }

 private:
  void on_timer();

  Join join_;
  Scope& scope_;
  Nanos grace_;
  std::optional<Timer> timer_;
  bool is_over_ = false;
};

inline Scope::Join Scope::join() { return Join(*this); }
inline Scope::JoinWithin Scope::join(Nanos grace) { return JoinWithin(*this, grace); }

// ---- of Promise and Then

inline Loop& Promise::loop() const { return scope_->loop(); }

inline void Promise::resume(Then then) {
  is_running_ = true;
  go_on(then.choose());
}

inline void Promise::resume(Promise& awaiting) {
  is_running_ = true;
  awaiting.handle().resume();
  if (awaiting.has_ended()) [[unlikely]]
    return go_on(awaiting.next());
  rest();
}

inline void Promise::go_on(Promise* next) {
  for (; next != nullptr; next = next->next())
    if (!next->has_ended()) next->handle().resume();
  rest();
}

inline void Promise::rest() {
  is_running_ = false;
  if (marks_ != 0) [[unlikely]]
    settle();
}

inline void Then::go() const {
  Promise& its_chain = chain();
  if (its_chain.is_running()) return wake();
  place().leave();
  its_chain.resume(*this);
}

inline void Then::wake() const {
  Promise& its_chain = chain();
  if (its_chain.is_doomed()) return place().leave();  // Or who wakes all would find it again.
  its_chain.scope().queue(place());
}

}  // namespace spate::coro
