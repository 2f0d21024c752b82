// Shared by the tests of the gateway: a server whose requests go through a gateway to upstreams
// that a test controls, on a clock that stands still.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client_harness.h"
#include "http/harness.h"
#include "spate/http/gateway.h"

namespace spate::testing {

inline constexpr std::string_view kOkTwo = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class GatewayTest : public HttpServerTest {
 protected:
  static constexpr std::string_view kUpstream = "http://up.example:81";

  GatewayTest() {
    make_gateway();
    on_request = [this](http::Exchange exchange) {
      gateway_.forward(std::move(exchange), upstream, std::move(on_unreached));
    };
  }

  // Replaces the gateway.
  void make_gateway(http::GatewayOptions options = {}) {
    options.client.open = [this](std::string_view host, std::uint16_t port) -> Result<Stream> {
      opened.push_back(std::string(host) + ":" + std::to_string(port));
      if (unreachable.contains(std::string(host))) return std::unexpected(open_error);
      auto [mine, theirs] = must(Stream::memory_pair(loop_));
      upstreams.push_back(std::make_unique<Peer>(std::move(theirs)));
      upstreams.back()->on_request = on_upstream;
      return std::move(mine);
    };
    gateway_ = must(http::Gateway::create(loop_, std::move(options)));
  }
  Peer& up(std::size_t index = 0) { return *upstreams.at(index); }
  // Sends a request, and runs until its upstream has received it.
  std::unique_ptr<RawClient> ask(std::string_view request) {
    auto client = connect();
    client->send(request);
    turns();
    return client;
  }
  // Returns the bytes that the upstream receives for a request.
  std::string sent_for(std::string_view request) {
    const std::size_t index = upstreams.size();
    const auto client = ask(request);
    if (upstreams.size() == index) return "nothing";
    std::string heard = up(index).heard();
    up(index).answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    turns();
    return heard;
  }
  // Returns the bytes that a client receives for a request, if an upstream answers with `answer`.
  std::string got_for(std::string_view answer, std::string_view request = kGet) {
    const std::size_t index = upstreams.size();
    const auto client = ask(request);
    up(index).answer(answer);
    up(index).stream().end();
    turns();
    return client->received;
  }

  std::string upstream{kUpstream};
  http::OnUnreached on_unreached;  // For the next request.
  std::set<std::string> unreachable;  // Hosts.
  std::error_code open_error{ECONNREFUSED, std::system_category()};
  std::vector<std::string> opened;
  std::vector<std::unique_ptr<Peer>> upstreams;
  std::function<void(Peer&)> on_upstream;  // Called for each new upstream connection.
  http::Gateway gateway_;
};

}  // namespace spate::testing
