// A Gateway with health checks in Worlds with all kinds of faults: an upstream that its checks
// found unhealthy gets no requests, and all upstreams are healthy in the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/http/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::World;

constexpr std::uint16_t kUpstreamPort = 7021;
constexpr std::uint16_t kCheckedGatePort = 7022;
constexpr Nanos kChecksTrouble = 2min;

enum class HealthMistake : std::uint8_t { none, accepts_any_status };

struct CheckedUpstreams {
  std::array<bool, 3> is_sick{};  // Its check gets 500 while its port is open.
  std::array<int, 3> served{};
};

http::Server serve_upstream(Loop& loop, CheckedUpstreams& all, std::size_t index) {
  auto server =
      http::serve(loop, Address::any_ipv6(kUpstreamPort), [&all, index](http::Exchange exchange) {
        if (exchange.request().path() != "/health") {
          ++all.served[index];
          return void(exchange.respond("hello"));
        }
        exchange.respond(all.is_sick[index] ? http::Status::internal_server_error
                                            : http::Status::ok);
      });
  return server ? std::move(*server) : http::Server();
}

struct CheckedGate {
  http::Gateway gateway;
  http::Server server;
};

std::unique_ptr<CheckedGate> serve_checked_gate(Loop& loop, http::UpstreamOptions upstreams) {
  http::GatewayOptions options{.client = {.connect = {.timeout = 5s}}, .timeout = 10s};
  options.upstreams = std::move(upstreams);
  auto gate = std::make_unique<CheckedGate>();
  gate->gateway = must(http::Gateway::create(loop, std::move(options)));
  gate->server = must(http::serve(loop, Address::any_ipv6(kCheckedGatePort),
                                  [&gateway = gate->gateway](http::Exchange exchange) {
                                    gateway.forward(std::move(exchange));
                                  }));
  return gate;
}

// Sends requests one after another, until it is destroyed.
class SteadyClient {
 public:
  SteadyClient(Loop& loop, const Address& gate)
      : url_("http://" + gate.to_string() + "/"),
        client_(must(http::Client::create(loop))),
        next_(loop, [this] { ask(); }) {
    next_.start(0s);
  }
  int answers = 0;

 private:
  void ask() {
    call_ = client_.fetch(url_, [this](const Result<http::Response>& response) {
      answers += response && response->status() == http::Status::ok;
      next_.start(500ms);
    });
  }

  const std::string url_;
  http::Client client_;
  http::Call call_;
  Timer next_;
};

void play_checks(World& world, HealthMistake mistake) {
  CheckedUpstreams all;
  std::array<Host*, 3> hosts{};
  http::UpstreamOptions upstreams;
  upstreams.health_check = http::HealthCheck{.path = "/health"};
  if (mistake == HealthMistake::accepts_any_status) upstreams.health_check->healthy = {{200, 599}};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i] = &world.add_host("upstream" + std::to_string(i));
    hosts[i]->boot([&all, i](Loop& loop) { return serve_upstream(loop, all, i); });
    upstreams.servers.push_back({"http://" + hosts[i]->address(kUpstreamPort).to_string()});
  }
  Host& here = world.add_host("gate");
  auto gate = here.run([&](Loop& loop) { return serve_checked_gate(loop, std::move(upstreams)); });
  auto client = here.run([&](Loop& loop) {
    return std::make_unique<SteadyClient>(loop, here.address(kCheckedGatePort));
  });
  const auto are_healthy = [&] {
    return std::ranges::all_of(gate->gateway.upstreams(), &http::UpstreamMetrics::is_healthy);
  };

  const std::size_t other = world.draw(3);
  draw_weather(world, *hosts[other], here, kChecksTrouble);
  world.run_for(kChecksTrouble);
  sim::sometimes(!are_healthy(), "an upstream is unhealthy in bad weather");
  hosts[other]->resume();
  if (!hosts[other]->is_up()) hosts[other]->restart();
  world.link_one_way(*hosts[other], here, {});
  world.link_one_way(here, *hosts[other], {});
  world.run_until(are_healthy, 1min);
  sim::always(are_healthy(), "all upstreams are healthy when all is well");

  const std::size_t sick = world.draw(3);
  all.is_sick[sick] = true;
  world.run_for(30s);  // More than three checks; and requests that were on their way.
  const int before = all.served[sick];
  const int answers = client->answers;
  world.run_for(drawn_span(world, 1min));
  sim::always(all.served[sick] == before, "an unhealthy upstream gets no requests");
  world.run_for(10s);
  sim::always(client->answers > answers, "the others get the requests");
  all.is_sick[sick] = false;
  world.run_for(30s);
  sim::always(all.served[sick] > before, "an upstream that recovers gets requests");
  here.run([&](Loop&) {
    client.reset();
    gate.reset();
  });
  world.run_for(1h);
  sim::always(here.open_descriptors() <= 3, "the gateway leaves nothing open");
}

SPATE_SWARM(AnUnhealthyUpstreamGetsNoRequests, 200,
            [](World& world) { play_checks(world, HealthMistake::none); })

TEST(SimSwarmDefects, HealthCheckOfAnyStatusIsDetected) {
  expect_found(50, "an unhealthy upstream gets no requests",
               [](World& world) { play_checks(world, HealthMistake::accepts_any_status); });
}

}  // namespace
}  // namespace spate::testing
