// The smallest program that needs spate's headers and its library: a timer that fires once.
#include <spate/loop.h>
#include <spate/timer.h>

#include <chrono>

int main() {
  auto loop = spate::Loop::create();
  if (!loop) return 1;
  int fired = 0;
  spate::Timer timer{**loop, [&fired](spate::Timer&) { ++fired; }};
  timer.start(std::chrono::milliseconds{1});
  (*loop)->run();
  return fired == 1 ? 0 : 1;
}
