// Client: an HTTP client with a connection pool.
//
//   auto client = must(http::Client::create(*loop));
//   http::Call call = client.fetch("http://example.org/", [](Result<http::Response> response) {
//     if (response) use(response->status(), response->text());
//   });
//
// Ownership: a handle of a loop's pool. Destroying it cancels its Calls and closes its connections;
// no callback follows. The loop may be destroyed first, which has the same effect.
// Threads: the loop's thread only; each loop needs its own Client.
// Callbacks: called by the loop, once, and never from inside a function of the Client or a Call.
// Inside everything is allowed, destroying the Client included.
//
// Pool: connections to one origin (scheme, host, port, proxy, address) are reused, the most
// recently used first. Idle connections are watched: if the server sends a byte or closes, the
// connection is dropped at once. Idle connections do not keep the loop alive. Calls that wait for a
// connection are served in order.
//
// Retries: a server may close an idle connection at the moment when it is reused. If a call on a
// reused connection received no byte of a response, it is repeated once, on a new connection. This
// applies to idempotent methods and to requests with an Idempotency-Key, if the body is still
// available; a POST is never repeated.
//
// HTTP/2: calls to one origin share a connection up to its limit of streams; beyond that more
// connections are made. A call that the server did not process (a refused stream, GOAWAY) is
// repeated, whatever its method, up to five times, unless an upload has begun. A stream reset or a
// malformed response ends one call only.
//
// A deadline also ends one call only. But if nothing was received on the connection since that call
// began, its server may be unreachable: the other calls continue, and new calls use another
// connection. Cancelling a Call does not have this effect at once. If nothing was received for a
// second before it, a PING is sent; if no byte arrives for another second, new calls use another
// connection, too.
//
// Other failures, such as a status 503 or a refused connection, are retried with
// ClientOptions::retry only (retry.h).
//
// Leniency cannot be configured: a malformed or ambiguous response is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/call.h"
#include "spate/http/cookie.h"
#include "spate/http/error.h"
#include "spate/http/http2.h"
#include "spate/http/proxy.h"
#include "spate/http/retry.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/time.h"

namespace spate {
class Loop;
}

namespace spate::http {

class ClientCore;

// Replaces connect() to a host and port: for tests, and for custom transports. Called by the loop;
// must not destroy the Client.
using OpenStream = Function<Result<Stream>(std::string_view host, std::uint16_t)>;

struct ClientOptions {
  std::size_t max_per_origin = 8;  // Connections per origin; at least 1.
  std::size_t max_connections = 256;
  // How long an idle connection is kept; at most a second less than the server promises
  // (Keep-Alive: timeout=n). Zero keeps none.
  Nanos idle_timeout{30'000'000'000};
  // Bytes of a response's header section, and of HTTP/2 trailers; at most 65,535. The number of
  // fields has no other limit.
  std::size_t max_head = 16 * 1024;
  // The timeout includes name resolution and the proxy.
  ConnectOptions connect{.timeout = Nanos{30'000'000'000}};
  ProxySettings proxies{};  // ProxySettings::from_environment() returns the usual ones.
  // A client context for https: TlsContext::client() (spate::tls). Empty: https is refused.
  TlsContext tls{};
  // Uses HTTP/2 with servers that select "h2" from the ALPN protocols of `tls` ({"h2",
  // "http/1.1"}). Its max_streams limits the concurrent calls of one connection, as does the
  // server's own limit.
  Http2 http2{};
  // Uses HTTP/2 over plain connections without negotiation: the server must support it ("prior
  // knowledge"). Not used with a proxy that receives the whole URL.
  bool http2_without_tls = false;
  // A context that does not offer "h2". It replaces `tls` for calls with CallOptions::upgrade to a
  // server that selects "h2" but does not support upgrades over HTTP/2 (RFC 8441). Without it such
  // a call ends with HttpError::not_upgraded, as it does with `http2_without_tls`.
  TlsContext tls_for_upgrades{};
  // Cookies to send, and the store for those of responses; must outlive the Client.
  CookieJar* jar = nullptr;
  std::string user_agent{};  // Empty: none.
  // An absolute URL. URLs of calls are then references relative to it (RFC 3986 §5.2): with
  // "http://example.org/api/", "users" is http://example.org/api/users. Userinfo in it
  // ("http://ada:secret@example.org/") sets `credentials`.
  std::string base_url{};
  // Sent with each request that has no field of that name. Authorization and Cookie are sent only
  // to the origin of `base_url`, and not at all without one. The fields that CallOptions::fields
  // excludes are EINVAL.
  Fields fields{};
  // Sent to the origin of `base_url` only; EINVAL without one.
  std::optional<Credentials> credentials{};
  // Accepts userinfo in the URLs of calls, as CallOptions::credentials. Otherwise such a URL is
  // invalid, because userinfo is mostly used to mislead people. Redirects never may have it.
  bool accept_userinfo = false;
  RetryOptions retry{};
  OnRetry on_retry{};  // Called before each retry.
  OpenStream open{};
};

struct ClientMetrics {
  std::size_t connections = 0;  // Open or being opened.
  std::size_t idle = 0;         // Idle ones among them.
  std::size_t calls = 0;        // In progress, including those that wait for a connection.
  std::size_t waiting = 0;      // Calls that wait for a connection.
  std::uint64_t requests = 0;   // Total sent; the next three are totals too.
  std::uint64_t reused = 0;     // On a connection that had carried a request before.
  std::uint64_t repeated = 0;   // Sent again because the connection was lost.
  std::uint64_t redirected = 0;
  std::uint64_t retried = 0;      // Attempts after a failure, by RetryOptions.
  std::uint64_t not_retried = 0;  // Failures that only RetryOptions::budget excluded from a retry.
};

class SPATE_EXPORT Client {
 public:
  // Makes an empty Client, which may only be assigned to and destroyed.
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

  // Makes a Client. Errors: EINVAL for a limit that is zero or too high, a user agent that is not a
  // valid field value, a `base_url` that is not an absolute URL, `fields`, `credentials` or `retry`
  // out of range, a server's TlsContext, `http2_without_tls` or "h2" in `tls` without `http2`,
  // or `tls_for_upgrades` without `tls` or with "h2"; ENOMEM.
  [[nodiscard("destroying the Client cancels its calls")]]
  static Result<Client> create(Loop& loop, ClientOptions options = {});

  // Sends a request, and calls `on_response` once with the whole response, of any status. When
  // memory runs out, the Call is not open, and no callback follows.
  // Errors of the callback: HttpError::invalid_url, HttpError::unknown_scheme, and
  // HttpError::https_without_tls for `url`; EINVAL for invalid `options`; other HttpErrors;
  // Error::deadline; those of connect() and start_tls(); ECONNRESET if the server closes without a
  // response; other errors that end a Stream.
  [[nodiscard("a discarded Call is cancelled at once")]]
  Call fetch(std::string_view url, OnResponse on_response, CallOptions options = {});
  // As fetch(), but both bodies are transferred in pieces. `handler` must outlive the Call, or its
  // on_closed().
  [[nodiscard("a discarded Call is cancelled at once")]]
  Call send(std::string_view url, CallHandler& handler, CallOptions options = {});

  // Must not be called on an empty Client.
  Loop& loop() const;
  // Closes the idle connections.
  void close_idle();
  ClientMetrics metrics() const;
  // Returns why the last failed call failed, as Call::last_failure(): for calls without a handle,
  // as those of coro::fetch(). Empty if none has failed. Valid until the next call fails.
  std::string_view last_failure() const;

 private:
  explicit Client(ClientCore* core) : core_(core) {}
  void close();

  ClientCore* core_ = nullptr;
};

}  // namespace spate::http
