// Gateway: forwards the requests of a Server to other servers, as a reverse proxy.
//
//   auto gateway = must(http::Gateway::create(*loop));
//   auto server = must(http::serve(*loop, address, [&](http::Exchange exchange) {
//     gateway.forward(std::move(exchange), "http://10.0.0.7:8080");
//   }));
//
// Ownership: a handle; it owns a Client, and the exchanges in progress. Destroying it ends all of
// them: an exchange without a response gets 503, responses that have begun are reset, and so are
// tunnels, at both ends. No callback follows. The Server and the loop may be destroyed first.
// Threads: the loop's thread only; each loop needs its own Gateway.
// Callbacks: OnUnreached and OnUpstreamChange, called by the loop. Inside the first everything is
// allowed, destroying the Gateway included.
//
// Requests: a request is sent as a new one, with the method, target, fields and body that the
// Server parsed; the Client decides its framing. No unparsed bytes are forwarded, so requests that
// the Server refuses never reach the upstream. Responses are treated alike.
// Bodies: bodies and trailers are forwarded in pieces, both ways, with back-pressure: no more is
// kept in memory than the queues of the two connections hold. The upstream decides on `Expect:
// 100-continue`; interim responses such as 103 are forwarded.
// Upstreams: with GatewayOptions::upstreams it selects them itself, and retries (upstreams.h).
// Failures: 502 if the upstream cannot be reached or its response is malformed, 504 if it is late.
// After the beginning of a response, the client's connection is reset instead. A client that
// disconnects cancels its request.
//
// Fields: those of one connection, and those that Connection names, are not forwarded. Host is
// kept. Forwarded, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto and Via are added. The
// client's own values of these, of other X-Forwarded-* and of X-Real-IP are dropped unless it is a
// proxy (GatewayOptions::clients). Responses carry the Date of this Server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/client.h"
#include "spate/http/exchange.h"
#include "spate/http/upstreams.h"
#include "spate/net/proxy_protocol.h"
#include "spate/time.h"

namespace spate {
class Loop;
}

namespace spate::http {

class GatewayCore;

// The kind of clients that a Gateway has.
enum class Clients : std::uint8_t {
  strangers,  // Their forwarding fields are dropped.
  proxies,    // Their forwarding fields are trusted, and extended.
};

// The treatment of a client that ended its side of the connection before its response was complete.
// Most such clients have disconnected; a few have only sent everything.
enum class HalfClosed : std::uint8_t { is_gone, is_answered };

struct GatewayOptions {
  // Must have no `jar`: it would mix the cookies of different clients.
  ClientOptions client{.max_per_origin = 256, .max_connections = 1024};
  // How long an upstream may take at each step: for a connection, for the header section of a
  // response, for a piece of a body in either direction. Waiting for the client does not count.
  // Zero is none.
  Nanos timeout{60'000'000'000};
  Clients clients = Clients::strangers;
  // Sends the upstream a PROXY protocol header with Request::client(), before TLS. Its destination
  // is 0.0.0.0 or ::, port 0. Connections to the upstream are then shared only by requests of one
  // client address.
  std::optional<ProxyVersion> proxy_protocol{};
  // Forwards request fields whose name has an underscore. CGI and WSGI map "-" to "_", so that a
  // client's X_Forwarded_For would look like the field that the Gateway sets.
  bool keep_underscores = false;
  HalfClosed half_closed = HalfClosed::is_gone;
  // Protocols to which a client may upgrade, if the upstream agrees. The connection is then a
  // tunnel whose bytes are not parsed. Must not have "h2c": its requests would bypass all checks.
  std::vector<std::string> upgrades{"websocket"};
  // For a tunnel in which no byte moves. Zero is none.
  Nanos tunnel_timeout{600'000'000'000};
  // Its name in Via: a token.
  std::string name = "spate";
  // The servers of forward(Exchange).
  std::optional<UpstreamOptions> upstreams{};
};

struct GatewayMetrics {
  std::size_t forwarding = 0;   // In progress, tunnels included.
  std::size_t tunnels = 0;      // Tunnels among them.
  std::uint64_t forwarded = 0;  // Total; the next two are totals too.
  std::uint64_t unreached = 0;  // Attempts in which nothing could be sent to an upstream.
  std::uint64_t failed = 0;     // Requests that got 502, 504, or a truncated response.
  std::uint64_t retried = 0;    // Requests sent to another of GatewayOptions::upstreams.
};

// Called when no connection could be made, so that nothing was sent. Returns another upstream to
// try, or an empty string. `error` is Error::connect_timeout, an error of connect(), or an error of
// start_tls().
using OnUnreached = Function<std::string(std::error_code error)>;

class SPATE_EXPORT Gateway {
 public:
  // Makes an empty Gateway, which may only be assigned to and destroyed.
  Gateway();
  Gateway(Gateway&& other) noexcept;
  Gateway& operator=(Gateway&& other) noexcept;
  ~Gateway();

  // Makes a Gateway. Errors: EINVAL for a jar, or a name or an upgrade that is not a token; those
  // of Client::create(). EINVAL for `upstreams` without a server, with a weight, time or number out
  // of range, with a URL that has a path, is no http or https URL, or needs the TLS that `client`
  // has not, with different schemes, a URL twice, or a key that is not a token or not used. EINVAL
  // for a `health_check` with another method, a path that does not begin with '/' or has a blank,
  // an invalid host, a timeout above its interval, or no status.
  [[nodiscard("destroying the Gateway ends the exchanges in progress")]]
  static Result<Gateway> create(Loop& loop, GatewayOptions options = {});

  // Forwards a request to the server at `upstream` ("http://host:port", whose path is ignored), and
  // sends its response. `exchange` must not have been read from or responded to. CONNECT gets 501.
  // OPTIONS and TRACE with Max-Forwards: 0 are handled here (RFC 9110 §7.6.2). With `on_unreached`,
  // other servers are tried before 502 is sent.
  void forward(Exchange exchange, std::string_view upstream, OnUnreached on_unreached = {});

  // Forwards a request as above to one of GatewayOptions::upstreams (upstreams.h), and to another
  // after a failure if the request may be repeated. Without that option it sends 502.
  void forward(Exchange exchange);

  GatewayMetrics metrics() const;
  // Returns a reading of each of GatewayOptions::upstreams, in their order.
  std::vector<UpstreamMetrics> upstreams() const;

 private:
  explicit Gateway(std::unique_ptr<GatewayCore> core);
  std::unique_ptr<GatewayCore> core_;
};

}  // namespace spate::http
