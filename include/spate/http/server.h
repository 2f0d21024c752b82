// Server: an HTTP server on a loop. serve(): the same in one line, on a loop or on Workers.
//
//   auto loop = spate::must(spate::Loop::create());
//   auto server = spate::must(spate::http::serve(
//       *loop, spate::Address::any_ipv6(8080),
//       [](spate::http::Exchange exchange) { exchange.respond("hello\n"); }));
//   loop->run();
//
// Ownership: destroying a Server stops listening and closes its connections gracefully: queued
// responses are still sent. (With HTTP/2 only as much as the client's windows allow, and nothing
// from within on_request() and on_body().) The functions of its Exchanges fail from then on, and no
// callback follows. drain() lets them finish. The loop may be destroyed first, which has the same
// effect.
// Threads: the loop's thread only.
//
// Requests of one HTTP/1 connection are served one after the other. A pipelined request stays
// unread until the previous response has ended, and while the client does not read its responses.
// HTTP/2 requests (ServerOptions::http2) are served concurrently.
// Malformed and ambiguous requests get 400 (or 413, 414, 417, 431, 501, 505), and the connection is
// closed; leniency cannot be configured. docs/guide/http-server.md lists the limits and timeouts,
// all of which are on by default.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/exchange.h"
#include "spate/http/http2.h"
#include "spate/http/server_metrics.h"
#include "spate/net/address.h"
#include "spate/net/listener.h"
#include "spate/net/network.h"
#include "spate/net/proxy_protocol.h"
#include "spate/net/server.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate::http {

class ServerCore;
class WorkersServerState;

using OnRequest = Function<void(Exchange exchange)>;

// The handler of requests: the user's; it must outlive its Servers.
class SPATE_EXPORT Service {
 public:
  virtual ~Service() = default;
  // Called when the header section of a request arrived. Respond now, or keep the Exchange.
  virtual void on_request(Exchange exchange) = 0;
};

using spate::ProxyProtocol;

// A request that the server, a Router, Hosts or the ready middleware refuses.
struct RefusedRequest {
  const Request& request;   // Empty if its header section could not be parsed.
  Status status;            // The response's: 400, 404, 413, 429, ...
  std::string_view reason;  // The rule that was broken: "the body is too long".
};
// The response to it: the fields, and a body that explains the status to a human. Both may be
// changed, but the fields must not have one of the server's own.
struct RefusalResponse {
  Fields fields{};
  std::string body{};
};
using OnRefused =
    std::function<void(const RefusedRequest& refused, RefusalResponse& response)>;

struct ServerOptions {
  // A server context: connections use TLS. Its `alpn` must have "http/1.1" (and "h2", with
  // `http2`), or be empty. TlsContext::reload() changes the certificates of a running server. For
  // plain connections on another port, make a second Server with the same Service.
  TlsContext tls{};
  // Called by the loop for each failed TLS handshake, for a log; it may destroy the Server. On
  // Workers each worker calls a copy, concurrently.
  OnTlsFailure on_tls_failure{};

  // Enables HTTP/2 beside HTTP/1.1. The limits below on the requests of a connection apply to all
  // its streams together; resetting or abandoning an exchange affects one stream only.
  Http2 http2{};

  // ---- limits; a request that exceeds one gets the status in brackets
  // Bytes of a request's header section, and of its trailers over HTTP/2 [431]; at most 64 KiB.
  std::size_t max_head = 16 * 1024;
  std::size_t max_request_line = 8 * 1024;  // [414]
  std::size_t max_fields = 100;             // Fields in each of these; at most 100 [431].
  std::uint64_t max_body = UINT64_MAX;      // Bytes, by any handler [413].
  std::uint64_t max_requests = UINT64_MAX;  // Requests per connection; the last response closes it.

  // ---- timeouts; zero is none. They are checked once a second.
  Nanos head_timeout{10'000'000'000};  // From the first byte of a header section to its end [408].
  Nanos idle_timeout{60'000'000'000};  // Between requests, and while the client reads nothing.
  Nanos body_timeout{30'000'000'000};  // Without a byte of a body that is being read [408].
  // Bytes per second of such a body, on average after the first ten seconds [408].
  std::uint64_t min_body_rate = 1024;

  // For responses without their own setting (Exchange::set_compression()).
  Compression compression = Compression::none;
  int compression_level = 4;  // 1 is fast, 9 is small.

  // The address in its header is returned by Request::peer(). A connection without a valid header
  // within head_timeout is reset. With `tls`, the header precedes the handshake.
  ProxyProtocol proxy_protocol = ProxyProtocol::off;
  std::vector<Network> proxies{};  // With ProxyProtocol::from_proxies only.

  // The proxies in front of the server, such as {must(Network::parse("10.0.0.0/8"))}. For a request
  // from one of them, Request::client() is the first address from the right of `client_field` that
  // is in none of these networks; if all are, the first one of the list. "unix:" trusts all
  // connections over unix sockets.
  std::vector<Network> trusted_proxies{};
  // The field to which your proxies append the address of their peer. "Forwarded" is read by RFC
  // 7239, other fields as a list of addresses. It must be the one that they set: they pass on
  // others as the client sent them.
  std::string client_field = "X-Forwarded-For";

  // Fills ServerMetrics::durations. Reads the clock twice for each request, as `log` does.
  bool measure_durations = false;

  // The Server field of every response; empty: none.
  std::string server_name{};
  // Called at the end of each exchange, by the loop and never from inside a call to the Exchange.
  // Inside it everything is allowed, destroying the server included, which invalidates the record.
  // If the header section could not be parsed, the request is empty. On Workers each worker calls a
  // copy, concurrently.
  std::function<void(const AccessRecord& record)> log{};

  // Called before the response to a refused request is sent, for instance to write its body as
  // JSON; also for the 500 of an Exchange that was destroyed without a response. Not called for
  // requests that get no response, because their stream or connection is reset. Must not use the
  // Exchange, or destroy the server. On Workers each worker calls a copy, concurrently.
  OnRefused on_refused{};

  // ---- exceptions that leave a handler of a request or of a WebSocket (docs/guide/http-server.md)

  // Called with the exception. The client then gets 500, or, if the response has begun, a reset; a
  // WebSocket is closed with internal_error; the server continues. AccessRecord::error is
  // HttpError::exception. Inside it everything is allowed except throwing. For a WebSocket the
  // request has only method(), route() and peer(). Not called after the Server was destroyed. On
  // Workers each worker calls a copy, concurrently.
  std::function<void(std::exception_ptr exception, const Request& request)> on_exception{};
  // Ends the program instead, as an exception that leaves any other callback does.
  bool exceptions_end_program = false;
};

class SPATE_EXPORT Server {
 public:
  // Makes an empty Server, which may only be assigned to and destroyed.
  Server();
  Server(Server&& other) noexcept;
  Server& operator=(Server&& other) noexcept;
  ~Server();

  // Make a Server. Errors: EINVAL for a limit that is zero or too high, an invalid compression
  // level, a client's TlsContext, `proxies` without
  // ProxyProtocol::from_proxies, a `client_field` that is not a token, or a `server_name` that is
  // not a valid field value; ENOMEM.
  [[nodiscard("destroying the Server closes its connections")]]
  static Result<Server> create(Loop& loop, Service& service, ServerOptions options = {});
  [[nodiscard("destroying the Server closes its connections")]]
  static Result<Server> create(Loop& loop, OnRequest on_request, ServerOptions options = {});

  // Listens; may be called several times. Unless set in `options`, `max_unsent` is 128 KiB. Errors:
  // those of Listener::create().
  [[nodiscard("it may have failed")]]
  Result<Address> listen(const Address& address, const ListenOptions& options = {});
  // Returns the address of the first listen(), with the kernel's choice for port 0; without a
  // family before.
  Address address() const;
  // Serves a connection that was accepted elsewhere, without TLS unless the Stream has it; must be
  // of the same loop (asserted). A server with `tls` expects no PROXY protocol header here.
  void add(Stream stream);

  // Stops listening and lets the exchanges finish. Responses carry `Connection: close`. Idle
  // connections are closed at once. Connections that were accepted or served within the last second
  // may send a request for another second, or half of `grace`. WebSockets are closed with
  // going_away. After `grace` the rest is reset. If a client has received everything and keeps its
  // socket open, the server waits for at most a second. Calls `done` once, from the loop, when no
  // connection, no TLS handshake and no WebSocket is left.
  void drain(Nanos grace, Function<void()> done = {});

  ServerMetrics metrics() const;

 private:
  explicit Server(std::unique_ptr<ServerCore> core);
  std::unique_ptr<ServerCore> core_;
};

// Make a Server that listens. Errors: those of Server::create() and Listener::create().
[[nodiscard("destroying the Server closes its connections")]]
SPATE_EXPORT Result<Server> serve(Loop& loop, const Address& address, Service& service,
                                  ServerOptions options = {}, const ListenOptions& listen = {});
[[nodiscard("destroying the Server closes its connections")]]
SPATE_EXPORT Result<Server> serve(Loop& loop, const Address& address, OnRequest on_request,
                                  ServerOptions options = {}, const ListenOptions& listen = {});

// ---- on Workers, until Workers::stop(), which drains each worker as Server::drain() does.
// Exchanges that are left after its grace are reset with Error::deadline. A worker's Service is
// made and called on the worker's thread, and destroyed there after its last connection was closed.
// Errors: those of Server::create() and Workers::listen().

// A server on Workers. A handle: copies refer to the same server, which belongs to the Workers, and
// destroying a handle changes nothing.
// Threads: any. No function waits for a worker. After Workers::stop(), metrics() returns the
// totals, drain() calls `done`, and the other functions fail.
class SPATE_EXPORT WorkersServer {
 public:
  // Makes an empty handle, which may only be assigned to and destroyed.
  WorkersServer();
  WorkersServer(const WorkersServer& other);
  WorkersServer& operator=(const WorkersServer& other);
  ~WorkersServer();

  // Returns the address, with the kernel's choice for port 0.
  const Address& address() const;
  unsigned workers() const;

  // Returns the sum over all workers, or the numbers of one (less than workers()). Busy workers
  // count as well: their numbers are read without their help. Numbers of the same moment may differ
  // by what happens meanwhile.
  ServerMetrics metrics() const;
  ServerMetrics metrics(unsigned worker) const;

  // Stops listening, and drains each worker as Server::drain() does. The threads continue.
  void drain(Nanos grace) const;
  // As above, and calls `done` once, by `loop`, when no worker has a connection left. Keeps `loop`
  // alive until then; if it is destroyed first, `done` is not called. Called on its thread. Errors:
  // ENOMEM; then nothing was done.
  std::error_code drain(Nanos grace, Loop& loop, Function<void()> done) const;

  // Replaces the options, or only the TLS context, for connections that are accepted from now on.
  // Open connections keep the previous ones until they are closed. Errors: EINVAL, as
  // Server::create(); ECANCELED after Workers::stop().
  std::error_code reload(ServerOptions options) const;
  std::error_code reload_tls(TlsContext tls) const;

 private:
  friend class WorkersServerState;
  explicit WorkersServer(std::shared_ptr<WorkersServerState> state);
  std::shared_ptr<WorkersServerState> state_;
};

// Makes the Service of a worker. May return nullptr (out of memory): the connection is then closed.
// Called concurrently.
using MakeService = Function<std::unique_ptr<Service>(Loop& loop) const>;

// How the workers share the listening socket. TLS is set in ServerOptions only.
struct WorkersListenOptions {
  Balance balance = Balance::reuse_port;
  ListenOptions listen{};
};

// Serves with one Service per worker.
[[nodiscard("it may have failed")]]
SPATE_EXPORT Result<WorkersServer> serve(Workers& workers, const Address& address,
                                         MakeService make, const ServerOptions& options = {},
                                         const WorkersListenOptions& how = {});

// Not for programs: the Service that serve() makes of a function.
template <class Handler>
class CopiedService final : public Service {
 public:
  explicit CopiedService(const Handler& handler) : handler_(handler) {}
  void on_request(Exchange exchange) override { handler_(std::move(exchange)); }

 private:
  Handler handler_;
};

// As above with a function. Each worker has a copy of it: state that the copies share must be
// thread-safe.
template <class Handler>
  requires std::copy_constructible<Handler> && std::invocable<Handler&, Exchange>
[[nodiscard("it may have failed")]]
Result<WorkersServer> serve(Workers& workers, const Address& address, Handler handler,
                            const ServerOptions& options = {},
                            const WorkersListenOptions& how = {}) {
  return serve(workers, address, MakeService([handler](Loop&) -> std::unique_ptr<Service> {
                 return std::make_unique<CopiedService<Handler>>(handler);
               }),
               options, how);
}

}  // namespace spate::http
