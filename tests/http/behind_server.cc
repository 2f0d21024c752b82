// The servers for behind_proxies.py, which puts nginx and haproxy before and after them. Prints one
// address a line, in the order of main(). `behind_server PATH` also listens at a unix socket. An
// HTTP server responds with the addresses of the client and of the peer, a session begins with that
// of its client. The last two forward /PORT to that port of 127.0.0.1, with a PROXY header.
#include <csignal>
#include <iostream>
#include <string>
#include <utility>

#include "spate/http/gateway.h"
#include "spate/http/server.h"
#include "spate/net/server.h"
#include "spate/signal.h"
#include "tls/testing/certificates.h"

namespace http = spate::http;

namespace {

const spate::Address kHere = spate::Address::loopback_ipv4(0);

struct Named : spate::Session {
  void on_open() override { stream().write(client().to_string() + "\n"); }
};

void print(const spate::Address& address) { std::cout << address.to_string() << std::endl; }

void name(http::Exchange exchange) {
  const http::Request& request = exchange.request();
  exchange.respond(request.client().to_string() + " " + request.peer().to_string());
}

http::ServerOptions trusting(const char* network, std::string field) {
  http::ServerOptions options;
  options.trusted_proxies = {spate::must(spate::Network::parse(network))};
  options.client_field = std::move(field);
  return options;
}

http::ServerOptions proxied(spate::TlsContext tls) {
  http::ServerOptions options;
  options.tls = std::move(tls);
  options.proxy_protocol = spate::ProxyProtocol::always;
  return options;
}

http::Server serve(spate::Loop& loop, http::ServerOptions options,
                   const spate::Address& at = kHere) {
  http::Server server = spate::must(http::serve(loop, at, name, std::move(options)));
  print(server.address());
  return server;
}

spate::Server<Named> serve_sessions(spate::Loop& loop, spate::TlsContext tls) {
  auto server = spate::must(spate::serve<Named>(
      loop, kHere,
      spate::ServeOptions{.tls = std::move(tls), .proxy_protocol = spate::ProxyProtocol::always}));
  print(server.address());
  return server;
}

// Forwards with a PROXY header of one version.
struct Front {
  Front(spate::Loop& loop, spate::ProxyVersion version)
      : gateway(spate::must(http::Gateway::create(loop, {.proxy_protocol = version}))),
        server(spate::must(http::serve(loop, kHere, [this](http::Exchange exchange) {
          const std::string port(exchange.request().path().substr(1));
          gateway.forward(std::move(exchange), "http://127.0.0.1:" + port);
        }))) {
    print(server.address());
  }
  http::Gateway gateway;
  http::Server server;
};

}  // namespace

int main(int, char** arguments) {
  const auto loop = spate::must(spate::Loop::create());
  const spate::TlsContext tls = spate::must(
      spate::TlsContext::server({.identities = {spate::testing::test_server().identity()}}));
  const auto listed = serve(*loop, trusting("127.0.0.1", "X-Forwarded-For"));
  const auto forwarded = serve(*loop, trusting("127.0.0.1", "Forwarded"));
  const auto plain = serve(*loop, proxied({}));
  const auto secure = serve(*loop, proxied(tls));
  const auto sessions = serve_sessions(*loop, {});
  const auto secure_sessions = serve_sessions(*loop, tls);
  const auto local = serve(*loop, trusting("unix:", "X-Forwarded-For"),
                           spate::must(spate::Address::path(arguments[1])));
  const Front first(*loop, spate::ProxyVersion::v1);
  const Front second(*loop, spate::ProxyVersion::v2);
  spate::Signal terminate(*loop, [&loop] { loop->stop(); });
  spate::must(terminate.start(SIGTERM));
  loop->run();
}
