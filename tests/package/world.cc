// The smallest program that needs spate::sim: a timer of a day, which takes no time.
#include <spate/sim/world.h>
#include <spate/timer.h>

#include <memory>

using namespace std::chrono_literals;

int main() {
  spate::sim::World world(1);
  spate::sim::Host& host = world.add_host("host");
  bool fired = false;
  auto timer = host.run([&fired](spate::Loop& loop) {
    auto made = std::make_unique<spate::Timer>(loop, [&fired](spate::Timer&) { fired = true; });
    made->start(24h);
    return made;
  });
  world.run_until([&fired] { return fired; }, 48h);
  return fired ? 0 : 1;
}
