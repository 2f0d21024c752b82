// Records the hash of a seed's trace: it must be the same wherever this is compiled and run. So
// each build of CI shows that compilers, levels, sanitizers and the layout of memory make no
// difference; tests/CMakeLists.txt runs it once more with another layout of memory.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mix.h"
#include "sim/echo.h"
#include "spate/coro/offload.h"
#include "spate/coro/scope.h"
#include "spate/coro/time.h"
#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/net/datagram.h"
#include "spate/net/process.h"
#include "spate/net/workers.h"
#include "spate/offload.h"
#include "spate/sim/running.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::World;

constexpr std::uint64_t kTracedSeeds = 100;
// By backend, as each reports events in its own order. Record others if the simulation, or the data
// sent in it, was changed on purpose.
const std::map<std::string_view, std::uint64_t> kTraces = {{"epoll", 16645194819044698514u},
                                                           {"kqueue", 2359725217339932559u}};

constexpr std::uint16_t kTracedEchoPort = 7000;
constexpr std::uint16_t kTracedHttpPort = 80;
constexpr std::uint16_t kTracedPacketPort = 53;

// Uses each service of a machine.
struct TracedServer {
  explicit TracedServer(Loop& loop)
      : workers(must(Workers::create({.threads = 2}))),
        local(must(serve<Echo>(loop, must(Address::parse("unix:@traced"))))),
        http(must(http::serve(loop, Address::any_ipv6(kTracedHttpPort), answer))),
        packets(must(Datagram::create(loop, Address::any_ipv6(kTracedPacketPort)))) {
    must(serve<Echo>(*workers, Address::any_ipv6(kTracedEchoPort),
                     {.balance = Balance::least_connections}));
    must(packets.start({.on_packets = [this](std::span<const Packet> some) {
      for (const Packet& packet : some) (void)packets.send(packet.bytes, packet.peer);
    }}));
    inside.start(loop, must(Address::parse("unix:@traced")));
  }
  TracedServer(const TracedServer&) = delete;
  TracedServer& operator=(const TracedServer&) = delete;
  static void answer(http::Exchange exchange) {
    exchange.respond("to " + std::string(exchange.request().path()));
  }

  std::unique_ptr<Workers> workers;
  Server<Echo> local;
  http::Server http;
  Datagram packets;
  EchoClient inside{std::string(100, 'i')};
};

void tell(std::string_view who, std::error_code error) {
  sim::note(std::string(who) + ' ' + std::to_string(error.value()));
}

// Uses each feature of a client.
struct TracedClient {
  TracedClient(World& drawn, Loop& of_host, const Host& of_server)
      : world(drawn),
        loop(of_host),
        server(of_server),
        http(must(http::Client::create(loop, {.connect = {.timeout = 5s}}))),
        packets(must(Datagram::create(loop, Address::any_ipv4(0)))),
        tick(loop, [this] { ask(); }),
        scope(loop) {
    must(packets.start({.on_packets = [](std::span<const Packet>) {}}));
    scope.spawn(wait());
    tick.start(0s);
  }

  coro::Task<> wait() {
    for (int i = 0; i < 5; ++i) {
      co_await coro::sleep(drawn_span(world, 5s));
      const Result<std::size_t> done = co_await coro::offload([] { return std::size_t{1}; });
      tell("work", done ? std::error_code() : done.error());
    }
  }

  void ask() {
    echoes.push_back(std::make_unique<EchoClient>(std::string(1 + world.draw(20'000), 'x')));
    echoes.back()->start(loop, server.address(kTracedEchoPort), {.timeout = 5s});
    calls.push_back(http.fetch("http://traced.example/" + std::to_string(echoes.size()),
                               [](const Result<http::Response>& response) {
                                 tell("http", response ? std::error_code() : response.error());
                               }));
    const std::string packet(1 + world.draw(3000), 'p');
    tell("packet", packets.send(bytes_of(packet), server.address(kTracedPacketPort)));
    auto process = spawn(loop, {.file = "child"},
                         [](const Child& child) { sim::note(std::to_string(child.exit_code())); });
    if (process) children.push_back(std::move(*process));
    if (echoes.size() < 5) tick.start(drawn_span(world, 10s));
  }

  World& world;
  Loop& loop;
  const Host& server;
  http::Client http;
  Datagram packets;
  std::vector<std::unique_ptr<EchoClient>> echoes;
  std::vector<http::Call> calls;
  std::vector<Process> children;
  Timer tick;
  coro::Scope scope;
};

std::uint64_t trace_of_all(std::uint64_t seed) {
  World world(seed);
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  world.name("traced.example", server);
  server.delay_work(10ms);
  client.delay_work(10ms);
  client.program("child", [](sim::Running& running) { running.exit(3); });
  server.boot([](Loop& loop) { return std::make_unique<TracedServer>(loop); });
  draw_weather(world, server, client, 1min);
  {
    const auto asking =
        client.run([&](Loop& loop) { return std::make_unique<TracedClient>(world, loop, server); });
    world.run_for(10min);
  }
  return world.trace();
}

TEST(SimTrace, MatchesRecordedTrace) {
  std::uint64_t all = 0;
  for (std::uint64_t seed = 1; seed <= kTracedSeeds; ++seed) all = mix(all ^ trace_of_all(seed));
  EXPECT_EQ(all, kTraces.at(Loop::backends().front()));
}

// A World does not depend on earlier allocations or their addresses.
TEST(SimTrace, DoesNotDependOnOtherAllocations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::uint64_t before = trace_of_all(seed);
    std::vector<std::unique_ptr<char[]>> others;
    for (std::size_t size = 1; size < 3000; size += seed) {
      others.push_back(std::make_unique<char[]>(size));
      if (size % 3 == 0) others[others.size() / 2].reset();
    }
    EXPECT_EQ(trace_of_all(seed), before) << seed;
  }
}

}  // namespace
}  // namespace spate::testing
