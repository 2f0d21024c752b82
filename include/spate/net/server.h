// serve(): listens, and creates a session for each connection.
//
//   auto server = spate::must(spate::serve<Echo>(*loop, spate::Address::any_ipv6(7000)));
//   loop->run();
//
// The arguments after the address and the options go to each session's constructor. They are kept
// by value, as std::thread does: pass shared state with std::ref.
//
// On a loop, everything runs on that loop's thread. On Workers, a session lives on its worker's
// thread; each worker has a copy of the arguments, and shared state must be thread-safe.
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

// A listener and its sessions. Destroying it stops listening, destroys the sessions and closes
// their connections gracefully; drain() lets them finish. The loop may be destroyed first. An empty
// one may only be assigned to and destroyed.
template <class T>
class [[nodiscard("destroying the Server ends its sessions")]] Server {
 public:
  Server() = default;

  // The listener's address.
  Address address() const { return parts().listener.address(); }
  Listener& listener() { return parts().listener; }
  Sessions<T>& sessions() { return parts().sessions; }

  // Stops listening, and lets the sessions finish: connections in the backlog are still served,
  // on_drain() of each session is called, and what is left after `grace` is reset
  // (Error::deadline). `done` is called once, from the loop, when no session is left.
  void drain(Nanos grace, std::move_only_function<void()> done = {}) {
    parts().sessions.drain(grace, std::move(done));
  }

 private:
  template <class S, class... Args>
  friend Result<Server<S>> serve(Loop& loop, const Address& address, const ListenOptions& options,
                                 Args&&... args);

  struct Parts {
    explicit Parts(Loop& loop) : sessions(loop) {
      sessions.stop_listening_ = [this] { listener.close(); };
    }
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

// Serves on the workers, until Workers::stop(), which calls on_drain() of every session, and
// on_closed(Error::deadline) of those that are left when the grace is over. Errors: those of
// Workers::listen().
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
