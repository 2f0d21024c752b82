// serve(): listens, and creates a session for each connection.
//
//   auto server = spate::must(spate::serve<Echo>(*loop, spate::Address::any_ipv6(7000)));
//   loop->run();
//
// Over TLS (tls.h): serve<Echo>(*loop, address, {.tls = context}).
//
// The arguments after the address and the options are passed to each session's constructor. They
// are kept by value, as std::thread does: pass shared state with std::ref.
//
// On a loop, everything runs on that loop's thread. On Workers, a session lives on its worker's
// thread; each worker has a copy of the arguments, and shared state must be thread-safe.
#pragma once

#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/assert.h"
#include "spate/error.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/listener.h"
#include "spate/net/network.h"
#include "spate/net/proxy_protocol.h"
#include "spate/net/session.h"
#include "spate/net/session_service.h"
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/net/workers_server.h"
#include "spate/time.h"

namespace spate {

struct ServeOptions;

// A listener and its sessions. Destroying it stops listening, destroys the sessions and closes
// their connections gracefully; drain() lets them finish. The loop may be destroyed first. An empty
// Server may only be assigned to and destroyed.
template <class T>
class [[nodiscard("destroying the Server ends its sessions")]] Server {
 public:
  Server() = default;

  // Returns the listener's address.
  Address address() const { return parts().listener.address(); }
  Listener& listener() { return parts().listener; }
  Sessions<T>& sessions() { return parts().sessions; }

  // Stops listening, and lets the sessions finish. Connections in the backlog are still served, and
  // on_drain() of each session is called. Sessions that are left after `grace` are reset
  // (Error::deadline). Calls `done` once, from the loop, when no session is left.
  void drain(Nanos grace, Function<void()> done = {}) {
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

// Options of serve().
struct ServeOptions {
  Balance balance = Balance::reuse_port;  // On Workers only.
  ListenOptions listen{};
  // A server context (TlsContext::server()): connections use TLS, and a session begins when the
  // handshake of its connection is complete. drain() and Workers::stop() also wait for handshakes
  // in progress, and reset them after the grace. TlsContext::reload() changes the certificate while
  // the server runs. Empty: plain connections.
  TlsContext tls{};
  // Called for each failed handshake, for a log; it may destroy the Server. On Workers it is called
  // on their threads, concurrently.
  OnTlsFailure on_tls_failure{};

  // Connections begin with a PROXY protocol header (proxy_protocol.h), before TLS if there is TLS.
  // Session::client() returns the address in it. A connection without a valid header within
  // `proxy_timeout` is reset; zero is no limit. drain() and Workers::stop() wait for headers as for
  // handshakes.
  ProxyProtocol proxy_protocol = ProxyProtocol::off;
  std::vector<Network> proxies{};  // With ProxyProtocol::from_proxies only.
  Nanos proxy_timeout{10'000'000'000};

  // Called by serve().
  bool is_valid() const {
    return !tls.is_client() &&
           (proxies.empty() || proxy_protocol == ProxyProtocol::from_proxies);
  }
  SessionSteps steps() const {
    return {tls, on_tls_failure, proxy_protocol, proxies, proxy_timeout};
  }
};

// Serves on a loop. Errors: those of Listener::create(); EINVAL for a client's TlsContext, for
// `proxies` without ProxyProtocol::from_proxies, or for a `balance`, which only Workers have.
template <class T, class... Args>
Result<Server<T>> serve(Loop& loop, const Address& address, const ServeOptions& options,
                        Args&&... args) {
  if (!options.is_valid() || options.balance != Balance::reuse_port)
    return std::unexpected(make_error_code(std::errc::invalid_argument));
  Server<T> server(loop);
  auto make = session_maker<T>(std::forward<Args>(args)...);
  auto entrance = std::make_shared<SessionEntrance<T, decltype(make)>>(
      server.sessions(), std::move(make), options.steps());
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

// As above, without TLS.
template <class T, class... Args>
Result<Server<T>> serve(Loop& loop, const Address& address, const ListenOptions& options,
                        Args&&... args) {
  return serve<T>(loop, address, ServeOptions{.listen = options}, std::forward<Args>(args)...);
}

// As above, with the default options.
template <class T, class... Args>
  requires(!(IsServeOptions<Args> || ...))
Result<Server<T>> serve(Loop& loop, const Address& address, Args&&... args) {
  return serve<T>(loop, address, ServeOptions{}, std::forward<Args>(args)...);
}

// Serves on the workers until Workers::stop(), which calls on_drain() of every session, and
// on_closed(Error::deadline) of those that are left after the grace. Returns a handle
// (workers_server.h); the server belongs to the workers. Errors: those of Workers::listen(); EINVAL
// for a client's TlsContext, or for `proxies` without ProxyProtocol::from_proxies.
template <class T, class... Args>
[[nodiscard("it may have failed")]]
Result<WorkersServer> serve(Workers& workers, const Address& address, const ServeOptions& options,
                            Args&&... args) {
  if (!options.is_valid()) return std::unexpected(make_error_code(std::errc::invalid_argument));
  const auto make = session_maker<T>(std::forward<Args>(args)...);
  using Hosting = SessionService<T, std::remove_const_t<decltype(make)>>;
  const auto host = [make,
                     steps = options.steps()](Loop& loop) -> std::unique_ptr<DrainableService> {
    return std::make_unique<Hosting>(loop, make, steps);
  };
  return WorkersServer::serve(workers, address, host, options.balance, options.listen);
}

// As above, with the default options.
template <class T, class... Args>
  requires(!(IsServeOptions<Args> || ...))
[[nodiscard("it may have failed")]]
Result<WorkersServer> serve(Workers& workers, const Address& address, Args&&... args) {
  return serve<T>(workers, address, ServeOptions{}, std::forward<Args>(args)...);
}

}  // namespace spate
