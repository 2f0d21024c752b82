// The smallest program that needs spate's headers, its library and that library's dependencies: a
// timer that fires once, a name that is found, and one that is not.
#include <spate/loop.h>
#include <spate/net/connect.h>
#include <spate/net/resolver.h>
#include <spate/timer.h>

#include <chrono>

int main() {
  auto loop = spate::Loop::create();
  if (!loop) return 1;
  int fired = 0;
  spate::Timer timer{**loop, [&fired](spate::Timer&) { ++fired; }};
  timer.start(std::chrono::milliseconds{1});
  std::size_t found = 0;
  const spate::Resolving resolving = spate::resolve(**loop, "localhost", 80, [&found](auto result) {
    if (result) found = result->size();
  });
  std::error_code error;
  const spate::Connecting connecting =
      spate::connect(**loop, "no such name", 80, [&error](auto result) { error = result.error(); });
  (*loop)->run();
  return fired == 1 && found > 0 && error == spate::NameError::bad_name ? 0 : 1;
}
