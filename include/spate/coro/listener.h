// Listener: a listening socket whose connections coroutines accept.
//
//   coro::Task<void> serve(Loop& loop, Address address, coro::Scope* sessions) {
//     coro::Listener listener = must(coro::Listener::create(loop, address));
//     for (;;) {
//       Result<coro::Accepted> next = co_await coro::until_stop(listener.accept());
//       if (!next) co_return;
//       sessions->spawn(session(std::move(next->stream)));
//     }
//   }
//
// Use it when the accepting task waits for something else in between: for room, for a child
// process, for a lookup. Otherwise use a spate::Listener whose callback spawns.
//
// Ownership: a handle, as spate::Listener: destroying it closes the socket at once, which resets
// connections in the backlog. No coroutine may be waiting on it then; it may be moved meanwhile.
// Threads: the loop's thread only.
// Any number of coroutines may wait, and are served in order. While none waits, connections stay in
// the backlog, and the Listener does not keep the loop alive. If a coroutine is destroyed before it
// is resumed with its connection, the next one gets that connection.
#pragma once

#include <memory>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/net/listener.h"

namespace spate::coro {

// An accepted connection and its peer address.
struct Accepted {
  spate::Stream stream;
  Address peer;
};

class SPATE_EXPORT Listener {
 public:
  class Accept;

  // Options and errors: those of spate::Listener.
  static Result<Listener> create(Loop& loop, const Address& address,
                                 const ListenOptions& options = {});
  static Result<Listener> adopt(Loop& loop, int fd, const ListenOptions& options = {});

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  // co_await: returns an Accepted. There are no errors: conditions such as EMFILE only make it wait
  // longer (spate::Listener::last_error()).
  Accept accept();
  // Returns the spate::Listener, for its address and counters.
  const spate::Listener& listener() const;

 private:
  class State;

  explicit Listener(std::unique_ptr<State> state);
  template <class Make>
  static Result<Listener> make(Make make);

  std::unique_ptr<State> state_;
};

// The awaitable of accept().
class SPATE_EXPORT Listener::Accept : public Operation<Accept> {
 public:
  explicit Accept(State& state) : state_(state) {}
  ~Accept() { cancel(); }

  bool await_ready() const;
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<Accepted> await_resume();

 private:
  State& state_;
  Continuation continuation_;
};

}  // namespace spate::coro
