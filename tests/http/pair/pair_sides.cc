#include "http/pair/pair_sides.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "http/random_handlings.h"
#include "spate/http/http2.h"

namespace spate::testing {

PairSides::PairSides(Random& random, Loop& loop, std::function<void(http::Exchange)> on_request)
    : random_(random), loop_(loop), on_request_(std::move(on_request)) {
  make_server();
  if (has_gateway_) make_front();
  renew_client();
}

void PairSides::make_server() {
  http::ServerOptions options;
  options.http2 = must(http::Http2::create({.max_streams = random_.one_in(2) ? 3u : 100u,
                                            .stream_window = random_.one_in(2) ? 2048u : 65'536u}));
  if (random_.one_in(4)) options.max_requests = 1 + random_.below(6);
  if (random_.one_in(6)) options.max_body = random_.below(kMostBody);
  server_ = must(http::Server::create(
      loop_, [this](http::Exchange exchange) { on_request_(std::move(exchange)); },
      std::move(options)));
  is_draining_ = false;
}

// Makes the server whose requests a gateway forwards to the other server.
void PairSides::make_front() {
  http::ServerOptions options;
  options.http2 = must(http::Http2::create());
  front_ = must(http::Server::create(
      loop_,
      [this](http::Exchange exchange) {
        gateway_.forward(std::move(exchange), "http://up.example");
      },
      std::move(options)));
  renew_gateway();
}

void PairSides::renew_gateway() {
  http::GatewayOptions options;
  options.client = client_options(server_);
  options.upgrades.emplace_back("talk");
  gateway_ = must(http::Gateway::create(loop_, std::move(options)));
}

void PairSides::renew_client() {
  client_ = {};
  client_ = must(http::Client::create(loop_, client_options(has_gateway_ ? front_ : server_)));
}

void PairSides::renew_server() {
  server_ = {};
  make_server();
}

void PairSides::drain_server() {
  if (std::exchange(is_draining_, true)) return;
  server_.drain(Nanos{random_.span(20'000'000'000)}, [this] { make_server(); });
}

http::ClientOptions PairSides::client_options(http::Server& server) {
  http::ClientOptions options;
  options.http2_without_tls = !random_.one_in(3);
  options.http2 = must(http::Http2::create({.max_streams = random_.one_in(2) ? 2u : 100u,
                                            .stream_window = random_.one_in(2) ? 2048u : 65'536u}));
  if (random_.one_in(2)) options.max_per_origin = 1 + random_.below(3);
  if (random_.one_in(3)) options.idle_timeout = Nanos{random_.span(2'000'000'000)};
  options.open = [this, &server](std::string_view, std::uint16_t) -> Result<Stream> {
    if (random_.one_in(40)) return std::unexpected(error_);
    auto [mine, theirs] = must(make_pair());
    server.add(std::move(theirs));
    return std::move(mine);
  };
  return options;
}

Result<std::pair<Stream, Stream>> PairSides::make_pair() {
  return has_sockets_ ? Stream::socket_pair(loop_) : Stream::memory_pair(loop_);
}

void PairSides::expect_no_calls() const {
  EXPECT_EQ(client_.metrics().calls, 0u);
  EXPECT_EQ(client_.metrics().waiting, 0u);
}

void PairSides::expect_nothing_left() const {
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(server_.metrics().connections, 0u);
  EXPECT_EQ(server_.metrics().exchanges, 0u);
  if (!has_gateway_) return;
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
  EXPECT_EQ(front_.metrics().connections, 0u);
}

}  // namespace spate::testing
