// Internals of serve() (server.h). Not for programs.
#pragma once

#include <concepts>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "spate/error.h"
#include "spate/net/address.h"
#include "spate/net/session.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate {

struct ListenOptions;
struct ServeOptions;

// Not an argument of the sessions.
template <class T>
concept IsServeOptions = std::same_as<std::remove_cvref_t<T>, ListenOptions> ||
                         std::same_as<std::remove_cvref_t<T>, ServeOptions>;

// A callable that opens a T for a Stream, with copies of `args`.
template <class T, class... Args>
auto session_maker(Args&&... args) {
  using Arguments = std::tuple<std::unwrap_ref_decay_t<Args>...>;
  return [arguments = Arguments(std::forward<Args>(args)...)](Sessions<T>& sessions,
                                                              Stream stream) mutable {
    std::apply([&](auto&... each) { sessions.open(std::move(stream), each...); }, arguments);
  };
}

// Whoever was accepted becomes a session of `sessions`: at once, or when the two have shaken hands.
template <class T, class Make>
class SessionEntrance : public std::enable_shared_from_this<SessionEntrance<T, Make>> {
 public:
  SessionEntrance(Sessions<T>& sessions, Make make, TlsContext tls, OnTlsFailure on_tls_failure)
      : sessions_(sessions),
        make_(std::move(make)),
        tls_(std::move(tls)),
        on_tls_failure_(std::move(on_tls_failure)) {}

  // Out of memory, it is closed.
  void enter(Stream stream, const Address& peer) {
    if (!tls_) return make_(sessions_, std::move(stream));
    auto* newcomer = new (std::nothrow) Newcomer(this->shared_from_this(), peer);
    if (newcomer != nullptr) newcomer->begin(std::move(stream));
  }

 private:
  class Newcomer final : public SessionNewcomer {
   public:
    Newcomer(std::shared_ptr<SessionEntrance> entrance, const Address& peer)
        : SessionNewcomer(entrance->sessions_), entrance_(std::move(entrance)), peer_(peer) {}

    void begin(Stream stream) {
      handshake_ = accept_tls(std::move(stream), entrance_->tls_,
                              [this](TlsResult<Stream> secured) { settle(std::move(secured)); });
      if (!handshake_.is_pending()) delete this;  // No memory.
    }

   private:
    // Gone before user code is called, which may destroy the Sessions.
    void settle(TlsResult<Stream> secured) {
      const std::shared_ptr<SessionEntrance> entrance = std::move(entrance_);
      const Address peer = peer_;
      delete this;
      if (secured) {
        entrance->make_(entrance->sessions_, std::move(*secured));
      } else if (entrance->on_tls_failure_) {
        entrance->on_tls_failure_(secured.error(), peer);
      }
    }

    std::shared_ptr<SessionEntrance> entrance_;
    const Address peer_;
    Connecting handshake_;
  };

  Sessions<T>& sessions_;
  Make make_;
  const TlsContext tls_;
  const OnTlsFailure on_tls_failure_;
};

// One worker's sessions.
template <class T, class Make>
class SessionService final : public WorkerService {
 public:
  SessionService(Loop& loop, Make make, TlsContext tls, OnTlsFailure on_tls_failure)
      : sessions_(loop),
        entrance_(std::make_shared<SessionEntrance<T, Make>>(
            sessions_, std::move(make), std::move(tls), std::move(on_tls_failure))) {}

  void on_accept(Stream stream, const Address& peer) override {
    entrance_->enter(std::move(stream), peer);
  }
  void on_drain(Nanos) override { sessions_.drain(kForever); }  // The worker watches the grace.
  void on_end() override { sessions_.end_all(Error::deadline); }

 private:
  Sessions<T> sessions_;
  const std::shared_ptr<SessionEntrance<T, Make>> entrance_;
};

}  // namespace spate
