// Server: serves HTTP on a loop. serve(): the same in one line, on a loop or on Workers.
//
//   auto loop = spate::must(spate::Loop::create());
//   auto server = spate::must(spate::http::serve(
//       *loop, spate::Address::any_ipv6(8080),
//       [](spate::http::Exchange exchange) { exchange.respond("hello\n"); }));
//   loop->run();
//
// Ownership: destroying a Server stops listening and closes its connections, gracefully: what was
// answered is still sent (of HTTP/2 what the client's windows let through, and nothing from within
// on_request() and on_body()). Its Exchanges refuse from then on, and no callback follows. drain()
// lets them finish. The loop may be destroyed first, which does the same.
// Threads: the loop's thread only.
//
// Requests of one connection are served one after the other; what a client pipelines stays unread
// until the answer before it has ended, or while it does not read its answers. Those of HTTP/2
// (ServerOptions::http2) are served as they come.
// Malformed and ambiguous requests are answered 400 (or 413, 414, 417, 431, 501, 505), and the
// connection is closed; there are no switches for leniency. docs/guide/http-server.md has the
// limits and the deadlines, all of which are on by default.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/http2.h"
#include "spate/net/address.h"
#include "spate/net/listener.h"
#include "spate/net/server.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate::http {

class ServerCore;

using OnRequest = std::move_only_function<void(Exchange exchange)>;

// What is done with requests: the user's; it must outlive its Servers.
class SPATE_EXPORT Service {
 public:
  virtual ~Service() = default;
  // The head of a request is there. Keep the Exchange, or answer now.
  virtual void on_request(Exchange exchange) = 0;
};

// One line of an access log. Views are valid until the callback returns.
struct AccessRecord {
  const Request& request;
  Status status;       // Of the answer; of one that was never begun 499.
  std::uint64_t sent;  // Bytes of the body, as far as they were written.
  std::uint64_t received;
  Nanos duration;         // From the head's last byte to the end of the exchange.
  std::error_code error;  // Why it was cut short, if it was.
};

// Whether connections begin with a header of the PROXY protocol, version 1 or 2, which says who is
// at the other end of a load balancer. Whoever may send it may claim to be anybody.
enum class ProxyProtocol : std::uint8_t {
  off,
  from_proxies,  // Those from ServerOptions::proxies must, others do not.
  always,        // All must: where nobody but the load balancer can connect.
};

struct ServerOptions {
  // Connections that are accepted speak TLS: a server's context, with "http/1.1" in its `alpn` (and
  // "h2", with `http2`), or with none; not with `proxy_protocol`. TlsContext::reload() changes the
  // certificates of a server that runs. For plain connections on another port, a second Server may
  // have the same Service.
  TlsContext tls{};

  // HTTP/2 beside HTTP/1.1. What is said of a connection's requests below is of all its streams; an
  // exchange that is reset, or that nobody ends, is one stream's.
  Http2 http2{};

  // ---- limits; what exceeds them is answered with the status in brackets
  // Bytes of a request's head, and of its trailers over HTTP/2 [431]; at most 64 KiB.
  std::size_t max_head = 16 * 1024;
  std::size_t max_request_line = 8 * 1024;  // [414]
  std::size_t max_fields = 100;             // The same of their fields; at most 100.
  std::uint64_t max_body = UINT64_MAX;      // Bytes, whoever reads them [413].
  std::uint64_t max_requests = UINT64_MAX;  // Of one connection; the last answer closes it.

  // ---- deadlines; zero is none. They are looked at once a second.
  Nanos head_timeout{10'000'000'000};  // From the first byte of a head to its end [408].
  Nanos idle_timeout{60'000'000'000};  // Between requests, and while the client takes nothing.
  Nanos body_timeout{30'000'000'000};  // Without a byte of a body that is being read [408].
  // Bytes a second of such a body, on average after the first ten seconds [408].
  std::uint64_t min_body_rate = 1024;

  // Of answers that have not said otherwise (Exchange::set_compression()).
  Compression compression = Compression::none;
  int compression_level = 4;  // 1 is fast, 9 is small.

  // What it says is Request::peer(). Without a good one, within head_timeout, a connection is
  // reset.
  ProxyProtocol proxy_protocol = ProxyProtocol::off;
  std::vector<Address> proxies{};  // Their ports do not count.

  // The field Server of every answer; empty: none.
  std::string server_name{};
  // Called at the end of each exchange. On Workers each calls a copy, concurrently.
  std::function<void(const AccessRecord& record)> log{};
};

struct ServerMetrics {
  std::size_t connections = 0;  // Open now.
  std::size_t exchanges = 0;    // In progress now.
  std::uint64_t accepted = 0;   // So far, as those that follow.
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;   // Malformed, too long, or too slow.
  std::uint64_t received = 0;  // Bytes of bodies.
  std::uint64_t sent = 0;
};

class SPATE_EXPORT Server {
 public:
  // Empty: may only be assigned to and destroyed.
  Server();
  Server(Server&& other) noexcept;
  Server& operator=(Server&& other) noexcept;
  ~Server();

  // Errors: EINVAL for a limit that is zero or too high, another level, or TLS behind the PROXY
  // protocol; ENOMEM.
  [[nodiscard("destroying the Server closes its connections")]]
  static Result<Server> create(Loop& loop, Service& service, ServerOptions options = {});
  [[nodiscard("destroying the Server closes its connections")]]
  static Result<Server> create(Loop& loop, OnRequest on_request, ServerOptions options = {});

  // May be called several times. Of ListenOptions, `max_unsent` is 128 KiB unless it says
  // otherwise. Errors: those of Listener::create().
  Result<Address> listen(const Address& address, const ListenOptions& options = {});
  // That of the first listen(), with the kernel's choice for port 0; without a family before.
  Address address() const;
  // Serves a connection that was accepted elsewhere, as it is; of the same loop (asserted).
  void add(Stream stream);

  // Stops listening. Answers say `Connection: close`; connections without a request have a second,
  // but not more than `grace`, in which one may still come. WebSockets are told going_away. What is
  // left after `grace` is reset. `done` is called once, from the loop, when no connection and no
  // WebSocket is left.
  void drain(Nanos grace, std::move_only_function<void()> done = {});

  ServerMetrics metrics() const;

 private:
  explicit Server(std::unique_ptr<ServerCore> core);
  std::unique_ptr<ServerCore> core_;
};

// A Server that listens. Errors: those of Server::create() and Listener::create().
[[nodiscard("destroying the Server closes its connections")]]
SPATE_EXPORT Result<Server> serve(Loop& loop, const Address& address, Service& service,
                                  ServerOptions options = {}, const ListenOptions& listen = {});
[[nodiscard("destroying the Server closes its connections")]]
SPATE_EXPORT Result<Server> serve(Loop& loop, const Address& address, OnRequest on_request,
                                  ServerOptions options = {}, const ListenOptions& listen = {});

// ---- on Workers, until Workers::stop(), which drains: what Server::drain() does, on each worker.
// What is left when its grace is over is reset, and told Error::deadline. The Service of a worker
// is made and called on the worker's thread, and destroyed there with its last connection closed.
// Errors: those of Server::create() and Workers::listen().

// May return nullptr (out of memory): the connection is then closed. Called concurrently.
using MakeService = std::move_only_function<std::unique_ptr<Service>(Loop& loop) const>;

SPATE_EXPORT Result<Address> serve(Workers& workers, const Address& address, MakeService make,
                                   const ServerOptions& options = {}, const ServeOptions& how = {});

// Not for programs: what serve() makes of a function.
template <class Handler>
class CopiedService final : public Service {
 public:
  explicit CopiedService(const Handler& handler) : handler_(handler) {}
  void on_request(Exchange exchange) override { handler_(std::move(exchange)); }

 private:
  Handler handler_;
};

// The same with a function, of which each worker has a copy: what copies share must be thread-safe.
template <class Handler>
  requires std::copy_constructible<Handler> && std::invocable<Handler&, Exchange>
Result<Address> serve(Workers& workers, const Address& address, Handler handler,
                      const ServerOptions& options = {}, const ServeOptions& how = {}) {
  return serve(workers, address, MakeService([handler](Loop&) -> std::unique_ptr<Service> {
                 return std::make_unique<CopiedService<Handler>>(handler);
               }),
               options, how);
}

}  // namespace spate::http
