#include <spate/loop.h>
#include <spate/timer.h>

#include <chrono>

int main() {
  auto loop = spate::must(spate::Loop::create());
  bool fired = false;
  spate::Timer timer(*loop, [&fired](spate::Timer&) { fired = true; });
  timer.start(std::chrono::milliseconds(1));
  loop->run();
  return fired ? 0 : 1;
}
