// serve(): listens, and has a session for every connection.
//
//   auto server = spate::serve<Echo>(*loop, Address::any_ipv6(7000));
//   loop->run();
//
// The sessions' class (session.h) is made from what follows the address and the options, kept by
// value as std::thread keeps it: what all sessions share is given with std::ref.
//
// On a loop, everything is on that loop's thread. On Workers, a session lives on its worker's
// thread; each worker keeps a copy of the arguments, and what they refer to has to be for any
// thread.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/assert.h"
#include "spate/error.h"
#include "spate/net/address.h"
#include "spate/net/listener.h"
#include "spate/net/session.h"
#include "spate/net/session_service.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate {

// A listener and its sessions. A handle: destroying it stops listening and destroys the sessions,
// whose connections are closed in good order; drain() lets them finish. The loop may be destroyed
// first. An empty one may only be assigned to and destroyed.
template <class T>
class [[nodiscard("destroying the Server ends its sessions")]] Server {
 public:
  Server() = default;

  // Where it listens.
  Address address() const { return parts().listener.address(); }
  Listener& listener() { return parts().listener; }
  Sessions<T>& sessions() { return parts().sessions; }

  // Listens no more, and lets the sessions finish: those who wait in the backlog are still served,
  // each session is told on_drain(), and what is not done after `grace` is reset (Error::deadline).
  // `done` is called once, from the loop, when no session is left.
  void drain(Nanos grace, std::move_only_function<void()> done = {}) {
    parts().listener.close();
    parts().sessions.drain(grace, std::move(done));
  }

 private:
  template <class S, class... Args>
  friend Result<Server<S>> serve(Loop& loop, const Address& address, const ListenOptions& options,
                                 Args&&... args);

  struct Parts {
    explicit Parts(Loop& loop) : sessions(loop) {}
    Sessions<T> sessions;
    Listener listener;
  };

  explicit Server(Loop& loop) : parts_(std::make_unique<Parts>(loop)) {}
  Parts& parts() const {
    SPATE_ASSERT(parts_ != nullptr);
    return *parts_;
  }

  std::unique_ptr<Parts> parts_;
};

// Errors: those of Listener::create().
template <class T, class... Args>
Result<Server<T>> serve(Loop& loop, const Address& address, const ListenOptions& options,
                        Args&&... args) {
  Server<T> server(loop);
  Sessions<T>& sessions = server.sessions();
  Result<Listener> listener = Listener::create(
      loop, address,
      [&sessions, make = session_maker<T>(std::forward<Args>(args)...)](
          Stream stream, const Address&) mutable { make(sessions, std::move(stream)); },
      options);
  if (!listener) return std::unexpected(listener.error());
  server.listener() = std::move(*listener);
  return server;
}

template <class T, class... Args>
  requires(!(std::same_as<std::remove_cvref_t<Args>, ListenOptions> || ...))
Result<Server<T>> serve(Loop& loop, const Address& address, Args&&... args) {
  return serve<T>(loop, address, ListenOptions{}, std::forward<Args>(args)...);
}

struct ServeOptions {
  Balance balance = Balance::reuse_port;
  ListenOptions listen{};
};

// Has the workers serve, until Workers::stop(): it tells every session on_drain(), and those that
// have not ended when its grace is over on_closed(Error::deadline). Errors: Workers::listen()'s.
template <class T, class... Args>
Result<Address> serve(Workers& workers, const Address& address, const ServeOptions& options,
                      Args&&... args) {
  const auto make = session_maker<T>(std::forward<Args>(args)...);
  using Hosting = SessionService<T, std::remove_const_t<decltype(make)>>;
  const auto host = [make](Loop& loop) -> std::unique_ptr<WorkerService> {
    return std::make_unique<Hosting>(loop, make);
  };
  return workers.listen(address, Workers::MakeService(host), options.balance, options.listen);
}

template <class T, class... Args>
  requires(!(std::same_as<std::remove_cvref_t<Args>, ServeOptions> || ...))
Result<Address> serve(Workers& workers, const Address& address, Args&&... args) {
  return serve<T>(workers, address, ServeOptions{}, std::forward<Args>(args)...);
}

}  // namespace spate
