// A reverse proxy with several upstreams. An upstream that fails gets no requests for a while, and
// requests that can be repeated go to another.
//   reverse_proxy 8080 http://localhost:9001 http://localhost:9002    then: curl localhost:8080
// With --check PATH it sends each upstream a health check every second.
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <utility>

#include "spate/http/gateway.h"
#include "spate/http/server.h"

using namespace std::chrono_literals;
using spate::http::Exchange;

namespace {

void log_change(const spate::http::UpstreamChange& change) {
  std::cerr << change.url << ": " << (change.is_available ? "available" : change.error.message());
  if (change.status) std::cerr << " (" << code_of(*change.status) << ')';
  std::cerr << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  spate::http::UpstreamOptions upstreams{.on_change = log_change};
  if (argc > 2 && argv[1] == std::string("--check")) {
    upstreams.health_check =
        spate::http::HealthCheck{.path = argv[2], .interval = 1s, .timeout = 1s};
    argv += 2;
    argc -= 2;
  }
  if (argc < 3) {
    std::cerr << "usage: reverse_proxy [--check PATH] [HOST:]PORT URL...\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  for (int i = 2; i < argc; ++i) upstreams.servers.push_back({argv[i]});
  spate::http::GatewayOptions options;
  options.upstreams = std::move(upstreams);
  auto gateway = spate::must(spate::http::Gateway::create(*loop, std::move(options)));
  auto server = spate::must(spate::http::serve(
      *loop, address, [&](Exchange exchange) { gateway.forward(std::move(exchange)); }));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(30s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
