// Gateway: forwards the requests of a Server to other servers, as a reverse proxy does.
//
//   auto gateway = must(http::Gateway::create(*loop));
//   auto server = must(http::serve(*loop, address, [&](http::Exchange exchange) {
//     gateway.forward(std::move(exchange), "http://10.0.0.7:8080");
//   }));
//
// Ownership: a handle; owns a Client, and what it forwards. Destroying it ends all: what is not
// answered yet gets 503, answers that have begun are reset, and so are tunnels, at both ends. No
// callback follows.
// The Server may be destroyed first, and so may the loop.
// Threads: the loop's thread only; each loop has a Gateway of its own.
// Callbacks: OnUnreached only, called by the loop; must not destroy the Gateway.
//
// A request is sent as a new one: its method, target, fields and body are those that the Server has
// understood, and how it is framed is the Client's decision; nothing is passed on unread. What the
// Server refuses never gets here. The answer comes back in the same way.
// Bodies, and what is behind them (trailers), go through in pieces, both ways; whoever is slow
// slows the other down, and no more waits in memory than the queues of the two connections hold. Of
// `Expect: 100-continue` the upstream decides; 103 and other answers before the answer go through.
// Failures: 502 if the upstream cannot be reached or its answer is malformed, 504 if it is late;
// behind the head of an answer, the client's connection is reset. A client that goes away cancels.
//
// Fields that are about one connection stay behind, with those that Connection names. Host is kept.
// Added are Forwarded, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto and Via; what a client
// says in these, in others of X-Forwarded-*, or in X-Real-IP is dropped unless it is a proxy
// (GatewayOptions::clients). The Date of an answer is this Server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/client.h"
#include "spate/http/exchange.h"
#include "spate/time.h"

namespace spate {
class Loop;
}

namespace spate::http {

class GatewayCore;

// Who the clients of a Gateway are.
enum class Clients : std::uint8_t {
  strangers,  // What they say of where a request comes from is not passed on.
  proxies,    // What they say is true, and is added to.
};

// A client has ended its side of the connection, and an answer is not whole yet. Most have gone
// away then; a few only have no more to say.
enum class HalfClosed : std::uint8_t { is_gone, is_answered };

struct GatewayOptions {
  // No `jar`, in which the cookies of different clients would meet.
  ClientOptions client{.max_per_origin = 256, .max_connections = 1024};
  // For how long an upstream may keep us waiting, each time: for a connection, for the answer's
  // head, for a piece of a body, either way. What waits for the client is not counted. Zero is
  // none.
  Nanos timeout{60'000'000'000};
  Clients clients = Clients::strangers;
  HalfClosed half_closed = HalfClosed::is_gone;
  // To what a client may upgrade, if the upstream does, too: a tunnel then, of which nothing is
  // read. No "h2c": its requests would be seen by nobody.
  std::vector<std::string> upgrades{"websocket"};
  // Of a tunnel on which nothing moves. Zero is none.
  Nanos tunnel_timeout{600'000'000'000};
  // What it calls itself in Via: a token.
  std::string name = "spate";
};

struct GatewayMetrics {
  std::size_t forwarding = 0;   // In progress now, with tunnels.
  std::size_t tunnels = 0;      // Of these.
  std::uint64_t forwarded = 0;  // So far, as those that follow.
  std::uint64_t unreached = 0;  // Times that nothing could be sent to an upstream.
  std::uint64_t failed = 0;     // Requests that got 502 or 504, or half an answer.
};

// Nothing was sent, for want of a connection: returns another upstream to try, or nothing. It may
// be called with Error::connect_timeout, connect()'s errors, or what start_tls() says.
using OnUnreached = std::move_only_function<std::string(std::error_code error)>;

class SPATE_EXPORT Gateway {
 public:
  // Empty: may only be assigned to and destroyed.
  Gateway();
  Gateway(Gateway&& other) noexcept;
  Gateway& operator=(Gateway&& other) noexcept;
  ~Gateway();

  // Errors: EINVAL for a jar, or a name or an upgrade that is no token; those of Client::create().
  [[nodiscard("destroying the Gateway ends what it forwards")]]
  static Result<Gateway> create(Loop& loop, GatewayOptions options = {});

  // Answers `exchange`, which nobody has answered or read from, with what the server at `upstream`
  // ("http://host:port") answers; the path of that is not used. CONNECT is answered 501. With
  // `on_unreached` other servers are tried, in the place of 502.
  void forward(Exchange exchange, std::string_view upstream, OnUnreached on_unreached = {});

  GatewayMetrics metrics() const;

 private:
  explicit Gateway(std::unique_ptr<GatewayCore> core);
  std::unique_ptr<GatewayCore> core_;
};

}  // namespace spate::http
