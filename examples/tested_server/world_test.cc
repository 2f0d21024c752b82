// Tests the lock server in many Worlds: the holder's machine loses power, or its link is cut, and
// another client gets the lock within a minute. Exits with 0 on success.
#include <chrono>
#include <cstdio>
#include <memory>

#include "asker.h"
#include "server.h"
#include "spate/sim/explore.h"

using namespace std::chrono_literals;
namespace sim = spate::sim;

namespace {

// Connects from `host` and sends "lock door". Returns whether it got the lock.
bool gets_lock(sim::World& world, sim::Host& host, const spate::Address& server,
               std::unique_ptr<Asker>& asker) {
  asker = host.run([&](spate::Loop& loop) { return std::make_unique<Asker>(loop, server); });
  host.run([&](spate::Loop&) { asker->say("lock door"); });
  world.run_until([&] { return asker->is_over() || !asker->answers().empty(); }, 5min);
  return asker->answers() == "yours\n";
}

void lose_a_holder(sim::World& world) {
  sim::Host& server = world.add_host("server");
  sim::Host& one = world.add_host("one");
  sim::Host& other = world.add_host("other");
  const sim::LinkOptions link{.latency = std::chrono::milliseconds(world.draw(200)),
                              .loss = static_cast<double>(world.draw(10)) / 100};
  world.link(server, one, link);
  world.link(server, other, link);
  server.boot([](spate::Loop& loop) {
    return std::make_unique<LockServer>(loop, spate::Address::any_ipv6(7000));
  });

  std::unique_ptr<Asker> holder;
  std::unique_ptr<Asker> next;
  sim::always(gets_lock(world, one, server.address(7000), holder), "the first gets the lock");
  sim::always(!gets_lock(world, other, server.address(7000), next), "the other does not");
  if (world.inject_fault(0.5, "the power is cut")) {
    one.crash();
  } else {
    world.cut(server, one);
  }
  world.run_for(kLongestSilence + 30s);
  sim::always(gets_lock(world, other, server.address(7000), next), "it is free within a minute");
  sim::sometimes(!one.is_up(), "the holder's machine lost power");
}

}  // namespace

int main() {
  const sim::Exploration found = sim::explore(1, 200, lose_a_holder);
  std::printf("%d Worlds: %s\n", static_cast<int>(found.seeds),
              found ? "fine" : found.report().c_str());
  return found ? 0 : 1;
}
