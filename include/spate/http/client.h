// Client: an HTTP client, with a pool of connections.
//
//   auto client = must(http::Client::create(*loop));
//   http::Call call = client.fetch("http://example.org/", [](Result<http::Response> response) {
//     if (response) use(response->status(), response->text());
//   });
//
// Ownership: a handle of a loop's pool. Destroying it cancels its Calls and closes its connections;
// no callback follows. The loop may be destroyed first, which does the same.
// Threads: the loop's thread only; each loop has a Client of its own.
// Callbacks: called by the loop, once, and never from inside a function of the Client or a Call.
// Inside everything is allowed, destroying the Client included.
//
// The pool: connections to one origin (scheme, host, port, proxy, address) are used again, that
// which was used last first. Idle ones are watched: a byte or an end from the server throws one out
// at once. They do not keep the loop alive. Calls that wait for a connection get one in order.
// Repeating: a server may close an idle connection just as it is used again. A call that has got no
// byte of an answer on a connection that was used before is repeated, once, on a fresh one, if its
// method is idempotent or it has an Idempotency-Key, and its body is still there; a POST never is.
// HTTP/2: calls of one origin share a connection, as many as it may carry, and more connections are
// made beyond that. A call that the server says it has not looked at (a refused stream, GOAWAY) is
// asked again, whatever its method, up to five times, unless an upload has begun. A stream that is
// reset, or an answer that is malformed, ends one call only. So does a deadline, but if nothing at
// all was received on the connection since that call began, its server may be out of reach without
// a word: calls that it has go on, new ones get another one. Cancelling a Call is no such sign. But
// if nothing was received for a second before that, the server is asked whether it is there (PING),
// and when it says nothing for another second, new calls get another connection, too.
// There are no switches for leniency: a response that is malformed or ambiguous is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/call.h"
#include "spate/http/cookie.h"
#include "spate/http/error.h"
#include "spate/http/http2.h"
#include "spate/http/proxy.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/time.h"

namespace spate {
class Loop;
}

namespace spate::http {

class ClientCore;

// Makes a connection in place of connect(), to a host and port: for tests, and for transports of
// one's own. Called by the loop; must not destroy the Client.
using OpenStream = std::move_only_function<Result<Stream>(std::string_view host, std::uint16_t)>;

struct ClientOptions {
  std::size_t max_per_origin = 8;  // Connections; at least 1.
  std::size_t max_connections = 256;
  // For how long an idle connection is kept; at most a second less than the server promises
  // (Keep-Alive: timeout=n). Zero keeps none.
  Nanos idle_timeout{30'000'000'000};
  // Bytes of a response's head, and of HTTP/2 of its trailers; at most 65,535.
  std::size_t max_head = 16 * 1024;
  // The timeout includes names and the proxy.
  ConnectOptions connect{.timeout = Nanos{30'000'000'000}};
  ProxySettings proxies{};  // ProxySettings::from_environment() has the usual ones.
  // A client's, for https: TlsContext::client() (spate::tls). None: https is refused.
  TlsContext tls{};
  // Speaks HTTP/2 with servers that choose "h2" of what `tls` offers ({"h2", "http/1.1"}). Its
  // max_streams are calls of one connection at the same time; a server's own limit counts, too.
  Http2 http2{};
  // Over plain connections, too, without asking: the server must speak it ("prior knowledge"). Not
  // to a proxy that is told the whole URL.
  bool http2_without_tls = false;
  // In place of `tls` for calls with CallOptions::upgrade to a server that chooses "h2" of that,
  // and takes no upgrades by HTTP/2 (RFC 8441): one that does not offer "h2". Without it, such a
  // call ends with HttpError::not_upgraded, as it does with `http2_without_tls`.
  TlsContext tls_for_upgrades{};
  // Whose cookies are sent, and where those of answers are kept; must outlive the Client.
  CookieJar* jar = nullptr;
  std::string user_agent{};  // Empty: none.
  OpenStream open{};
};

struct ClientMetrics {
  std::size_t connections = 0;  // Open now, or being opened.
  std::size_t idle = 0;         // Of these.
  std::size_t calls = 0;        // In progress now, waiting ones included.
  std::size_t waiting = 0;      // For a connection.
  std::uint64_t requests = 0;   // Sent so far, as those that follow.
  std::uint64_t reused = 0;     // On a connection that had carried one before.
  std::uint64_t repeated = 0;   // Once more, as the connection had gone.
  std::uint64_t redirected = 0;
};

class SPATE_EXPORT Client {
 public:
  // Empty: may only be assigned to and destroyed.
  Client() = default;
  Client(Client&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    Client moved(std::move(other));
    std::swap(core_, moved.core_);
    return *this;
  }
  ~Client() {
    if (core_ != nullptr) close();
  }

  // Errors: EINVAL for a limit that is zero or too high, or a user agent that no field can have;
  // ENOMEM.
  [[nodiscard("destroying the Client cancels its calls")]]
  static Result<Client> create(Loop& loop, ClientOptions options = {});

  // The whole answer, of any status, in one callback. Out of memory, the Call is not open, and no
  // callback follows.
  // Errors of the callback: EINVAL for what is wrong with `url` or `options`; EPROTONOSUPPORT for a
  // scheme other than http and https; ENOTSUP for https without ClientOptions::tls; HttpError;
  // Error::deadline; those of connect(); ECONNRESET if the server closes without an answer, and
  // what else ends a Stream.
  [[nodiscard("a Call that nobody keeps is cancelled at once")]]
  Call fetch(std::string_view url, OnResponse on_response, CallOptions options = {});
  // The same in pieces, both ways. `handler` must outlive the Call, or its on_closed().
  [[nodiscard("a Call that nobody keeps is cancelled at once")]]
  Call send(std::string_view url, CallHandler& handler, CallOptions options = {});

  // Not of one that is empty.
  Loop& loop() const;
  // Closes the idle connections.
  void close_idle();
  ClientMetrics metrics() const;

 private:
  explicit Client(ClientCore* core) : core_(core) {}
  void close();

  ClientCore* core_ = nullptr;
};

}  // namespace spate::http
