// The server for http2_peers.py, with HTTP/2 and HTTP/1.1. Prints its two addresses: the plain one,
// and the one with TLS. SIGTERM drains and ends it.
//   GET  /          hello
//   GET  /long      10 MiB
//   GET  /trailers  hello, with Checksum behind
//   any  /late      hello, after a while
//   POST /          how long the body was
//   a WebSocket at /talk echoes
#include <csignal>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "spate/http/http2.h"
#include "spate/http/router.h"
#include "spate/http/websocket_sessions.h"
#include "spate/signal.h"
#include "spate/timer.h"
#include "tls/testing/certificates.h"

using spate::http::Exchange;
using spate::http::Status;

namespace {

constexpr std::size_t kLong = 10 * 1024 * 1024;
constexpr std::size_t kMostBody = 100 * 1024 * 1024;

// Answers exchanges that have waited for a whole tick.
class Late {
 public:
  explicit Late(spate::Loop& loop) : timer_(loop, [this](spate::Timer&) { answer(); }) {}

  void hold(Exchange exchange) {
    new_.push_back(std::move(exchange));
    if (!timer_.is_active()) timer_.start(kTick);
  }

 private:
  static constexpr spate::Nanos kTick{200'000'000};

  void answer() {
    for (Exchange& exchange : old_) exchange.respond("hello\n");
    old_ = std::exchange(new_, {});
    if (!old_.empty()) timer_.start(kTick);
  }

  std::vector<Exchange> old_;
  std::vector<Exchange> new_;
  spate::Timer timer_;
};

struct Talk : spate::http::WebSocketSession {
  void on_message(spate::http::MessageKind kind, spate::Bytes bytes) override {
    socket().send(kind, bytes);
  }
};
using Talks = spate::http::WebSocketSessions<Talk>;

void add_routes(spate::http::Router& router, Late& late, Talks& talks) {
  router.get("/talk", [&talks](Exchange exchange) { talks.accept(std::move(exchange)); });
  router.any("/late", [&late](Exchange exchange) { late.hold(std::move(exchange)); });
  router.get("/", [](Exchange exchange) { exchange.respond("hello\n"); });
  router.get("/long", [](Exchange exchange) { exchange.respond(std::string(kLong, 'x')); });
  router.get("/trailers", [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("hello\n");
    spate::http::Fields trailers;
    trailers.add("Checksum", "6");
    exchange.end(trailers);
  });
  router.post("/", [](Exchange exchange) {
    read_body(std::move(exchange), kMostBody, [](Exchange whole, spate::Bytes body) {
      whole.respond(std::to_string(body.size()) + "\n");
    });
  });
}

spate::http::Server serve(spate::Loop& loop, spate::http::Service& service, spate::TlsContext tls) {
  spate::http::ServerOptions options;
  options.http2 = spate::must(spate::http::Http2::create());
  options.tls = std::move(tls);
  spate::http::Server server = spate::must(
      spate::http::serve(loop, spate::Address::loopback_ipv4(0), service, std::move(options)));
  std::cout << server.address().to_string() << std::endl;
  return server;
}

struct Servers {
  spate::http::Server plain;
  spate::http::Server secure;

  void end() {
    plain.drain(spate::Nanos{10'000'000'000});
    secure.drain(spate::Nanos{10'000'000'000});
  }
};

}  // namespace

int main() {
  const auto loop = spate::must(spate::Loop::create());
  spate::http::Router router;
  Late late(*loop);
  Talks talks(*loop);
  add_routes(router, late, talks);
  const spate::TlsContext tls = spate::must(spate::TlsContext::server(
      {.identities = {spate::testing::test_server().identity()}, .alpn = {"h2", "http/1.1"}}));
  Servers servers = {serve(*loop, router, {}), serve(*loop, router, tls)};
  spate::Signal terminate(*loop, [&servers](spate::Signal& self) {
    self.stop();
    servers.end();
  });
  spate::must(terminate.start(SIGTERM));
  loop->run();
}
