// serve(): listens, and creates a session for each connection.
//
//   auto server = spate::must(spate::serve<Echo>(*loop, spate::Address::any_ipv6(7000)));
//   loop->run();
//
// Over TLS (tls.h): serve<Echo>(*loop, address, {.tls = context}).
//
// The arguments after the address and the options go to each session's constructor. They are kept
// by value, as std::thread does: pass shared state with std::ref.
//
// On a loop, everything runs on that loop's thread. On Workers, a session lives on its worker's
// thread; each worker has a copy of the arguments, and shared state must be thread-safe.
#pragma once

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
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate {

struct ServeOptions;

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
  friend Result<Server<S>> serve(Loop& loop, const Address& address, const ServeOptions& options,
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

// How connections come about that become sessions.
struct ServeOptions {
  Balance balance = Balance::reuse_port;  // On Workers.
  ListenOptions listen{};
  // A server's (TlsContext::server()): the connections speak TLS, and a session begins when its
  // connection has shaken hands; until then there is no session, but drain() and Workers::stop()
  // wait for it, too, and reset it after the grace. TlsContext::reload() changes the certificate
  // while this serves. None: they do not.
  TlsContext tls{};
  // Of handshakes that came to nothing, for a log; it may destroy the Server. On Workers: called on
  // their threads, concurrently.
  OnTlsFailure on_tls_failure{};
};

// Errors: those of Listener::create(); EINVAL for a client's TlsContext.
template <class T, class... Args>
Result<Server<T>> serve(Loop& loop, const Address& address, const ServeOptions& options,
                        Args&&... args) {
  if (options.tls.is_client()) return std::unexpected(make_error_code(std::errc::invalid_argument));
  Server<T> server(loop);
  auto make = session_maker<T>(std::forward<Args>(args)...);
  auto entrance = std::make_shared<SessionEntrance<T, decltype(make)>>(
      server.sessions(), std::move(make), options.tls, options.on_tls_failure);
  Result<Listener> listener = Listener::create(
      loop, address,
      [entrance = std::move(entrance)](Stream stream, const Address& peer) {
        entrance->enter(std::move(stream), peer);
      },
      options.listen);
  if (!listener) return std::unexpected(listener.error());
  server.listener() = std::move(*listener);
  return server;
}

template <class T, class... Args>
Result<Server<T>> serve(Loop& loop, const Address& address, const ListenOptions& options,
                        Args&&... args) {
  return serve<T>(loop, address, ServeOptions{.listen = options}, std::forward<Args>(args)...);
}

template <class T, class... Args>
  requires(!(IsServeOptions<Args> || ...))
Result<Server<T>> serve(Loop& loop, const Address& address, Args&&... args) {
  return serve<T>(loop, address, ServeOptions{}, std::forward<Args>(args)...);
}

// Serves on the workers, until Workers::stop(), which calls on_drain() of every session, and
// on_closed(Error::deadline) of those that are left when the grace is over. Errors: those of
// Workers::listen(); EINVAL for a client's TlsContext.
template <class T, class... Args>
Result<Address> serve(Workers& workers, const Address& address, const ServeOptions& options,
                      Args&&... args) {
  if (options.tls.is_client()) return std::unexpected(make_error_code(std::errc::invalid_argument));
  const auto make = session_maker<T>(std::forward<Args>(args)...);
  using Hosting = SessionService<T, std::remove_const_t<decltype(make)>>;
  const auto host = [make, tls = options.tls, failed = options.on_tls_failure](
                        Loop& loop) -> std::unique_ptr<WorkerService> {
    return std::make_unique<Hosting>(loop, make, tls, failed);
  };
  return workers.listen(address, Workers::MakeService(host), options.balance, options.listen);
}

template <class T, class... Args>
  requires(!(IsServeOptions<Args> || ...))
Result<Address> serve(Workers& workers, const Address& address, Args&&... args) {
  return serve<T>(workers, address, ServeOptions{}, std::forward<Args>(args)...);
}

}  // namespace spate
