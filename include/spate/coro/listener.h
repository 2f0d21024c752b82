// Listener: a listening socket whose connections are accepted by coroutines.
//
//   coro::Task<void> serve(Loop& loop, Address address, coro::Scope* sessions) {
//     coro::Listener listener = must(coro::Listener::create(loop, address));
//     for (;;) {
//       Result<coro::Newcomer> next = co_await coro::until_stop(listener.accept());
//       if (!next) co_return;
//       sessions->spawn(session(std::move(next->stream)));
//     }
//   }
//
// A server that does nothing between two of them is a spate::Listener whose callback spawns; this
// is for those that wait: for room, for a child, for what is accepted by name.
//
// Ownership: a handle, as spate::Listener: destroying it closes the socket at once, which resets
// connections in the backlog. Nobody may be waiting for it then; it may be moved meanwhile.
// Threads: the loop's thread only.
// Any number of coroutines may wait, and are served in order. While nobody does, connections wait
// in the backlog, and the Listener does not keep the loop alive. One that was accepted for a
// coroutine that is destroyed before it goes on is the next one's.
#pragma once

#include <memory>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/net/listener.h"

namespace spate::coro {

// A connection, and who has made it.
struct Newcomer {
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

  // co_await: a Newcomer. There are no errors; EMFILE and the like only make it wait longer
  // (spate::Listener::last_error()).
  Accept accept();
  // To look at: its address, and what it has accepted.
  const spate::Listener& listener() const;

 private:
  class Door;

  explicit Listener(std::unique_ptr<Door> door);
  template <class Make>
  static Result<Listener> make(Make make);

  std::unique_ptr<Door> door_;
};

// What accept() gives to co_await.
class SPATE_EXPORT Listener::Accept : public Operation<Accept> {
 public:
  explicit Accept(Door& door) : door_(door) {}
  ~Accept() { cancel(); }

  bool await_ready() const;
  bool start(Promise& chain, Then then);
  void cancel();
  Result<Newcomer> await_resume();

 private:
  Door& door_;
  Then then_;
};

}  // namespace spate::coro
