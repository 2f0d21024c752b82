// Internals of serve() (server.h). Not for programs.
#pragma once

#include <concepts>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/net/address.h"
#include "spate/net/network.h"
#include "spate/net/proxy_protocol.h"
#include "spate/net/session.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/net/workers_server.h"
#include "spate/time.h"

namespace spate {

struct ListenOptions;
struct ServeOptions;

// Not an argument of the sessions.
template <class T>
concept IsServeOptions = std::same_as<std::remove_cvref_t<T>, ListenOptions> ||
                         std::same_as<std::remove_cvref_t<T>, ServeOptions>;

// Returns a callable that opens a T for a Stream, with copies of `args`. The copies are passed as
// const: a constructor that changed one would change state that no other part of the program can
// reach.
template <class T, class... Args>
auto session_maker(Args&&... args) {
  using Arguments = std::tuple<std::unwrap_ref_decay_t<Args>...>;
  static_assert(std::constructible_from<T, const std::unwrap_ref_decay_t<Args>&...>,
                "sessions are made of const copies of the arguments of serve(): pass an object "
                "that they share with std::ref");
  return [arguments = Arguments(std::forward<Args>(args)...)](
             Sessions<T>& sessions, Stream stream, std::unique_ptr<Address> client) {
    std::apply(
        [&](auto&... each) { sessions.open_for(std::move(client), std::move(stream), each...); },
        arguments);
  };
}

// The steps of a connection before its session begins: those of ServeOptions.
struct SessionSteps {
  TlsContext tls{};
  OnTlsFailure on_tls_failure{};
  ProxyProtocol proxy_protocol = ProxyProtocol::off;
  std::vector<Network> proxies{};
  Nanos proxy_timeout{0};
};

// Turns accepted connections into sessions of `sessions`: at once, or after the PROXY protocol
// header and the TLS handshake.
template <class T, class Make>
class SessionEntrance : public std::enable_shared_from_this<SessionEntrance<T, Make>> {
 public:
  SessionEntrance(Sessions<T>& sessions, Make make, SessionSteps steps)
      : sessions_(sessions), make_(std::move(make)), steps_(std::move(steps)) {}

  // Closes the connection when memory runs out.
  void enter(Stream stream, const Address& peer) {
    const bool has_header =
        expects_proxy_header(steps_.proxy_protocol, steps_.proxies, peer);
    if (!steps_.tls && !has_header) return make_(sessions_, std::move(stream), nullptr);
    auto* pending = new (std::nothrow) Pending(this->shared_from_this(), peer);
    if (pending == nullptr) return;
    has_header ? pending->read_header(std::move(stream)) : pending->secure(std::move(stream));
  }

 private:
  class Pending final : public PendingSession {
   public:
    Pending(std::shared_ptr<SessionEntrance> entrance, const Address& peer)
        : PendingSession(entrance->sessions_), entrance_(std::move(entrance)), peer_(peer) {}

    void read_header(Stream stream) {
      step_ = read_proxy_header(std::move(stream), entrance_->steps_.proxy_timeout,
                                [this](Result<Stream> plain, const ProxyHeader& header) {
                                  on_header(std::move(plain), header.source);
                                });
      if (!step_.is_pending()) delete this;  // Memory ran out.
    }
    void secure(Stream stream) {
      step_ = accept_tls_by(entrance_->steps_.tls, std::move(stream),
                            [this](TlsResult<Stream> secured) { settle(std::move(secured)); });
      if (!step_.is_pending()) delete this;  // Memory ran out.
    }

   private:
    // A connection without a valid header was reset. Without memory for the address it is, too: the
    // session would take the proxy for the client.
    void on_header(Result<Stream> plain, const Address& source) {
      if (!plain) return delete this;
      if (source.family() != Address::Family::none) {
        peer_ = source;
        client_.reset(new (std::nothrow) Address(source));
        if (client_ == nullptr) return delete this;
      }
      entrance_->steps_.tls ? secure(std::move(*plain)) : settle(std::move(*plain));
    }
    // Deletes itself before it calls user code, which may destroy the Sessions.
    void settle(TlsResult<Stream> secured) {
      const std::shared_ptr<SessionEntrance> entrance = std::move(entrance_);
      const Address peer = peer_;
      std::unique_ptr<Address> client = std::move(client_);
      delete this;
      if (secured) {
        entrance->make_(entrance->sessions_, std::move(*secured), std::move(client));
      } else if (entrance->steps_.on_tls_failure) {
        entrance->steps_.on_tls_failure(secured.error(), peer);
      }
    }

    std::shared_ptr<SessionEntrance> entrance_;
    Address peer_;
    std::unique_ptr<Address> client_;  // The address in the header.
    Connecting step_;
  };

  Sessions<T>& sessions_;
  Make make_;
  const SessionSteps steps_;
};

// One worker's sessions.
template <class T, class Make>
class SessionService final : public DrainableService {
 public:
  SessionService(Loop& loop, Make make, SessionSteps steps)
      : sessions_(loop),
        entrance_(std::make_shared<SessionEntrance<T, Make>>(sessions_, std::move(make),
                                                             std::move(steps))) {}

  void on_accept(Stream stream, const Address& peer) override {
    entrance_->enter(std::move(stream), peer);
  }
  void drain(Nanos grace, const DrainTicket& ticket) override {
    sessions_.drain(grace, [ticket] {});
  }
  void on_drain(Nanos) override { sessions_.drain(kForever); }  // The worker enforces the grace.
  void on_end() override { sessions_.end_all(Error::deadline); }

 private:
  Sessions<T> sessions_;
  const std::shared_ptr<SessionEntrance<T, Make>> entrance_;
};

}  // namespace spate
