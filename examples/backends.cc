// Runs a timer on each backend, and prints the number of system calls.
#include <iostream>

#include "spate/timer.h"

using namespace std::chrono_literals;

int main() {
  for (const std::string_view name : spate::Loop::backends()) {
    std::cout << name << ": ";
    auto loop = spate::Loop::create({.backend = name});
    if (!loop) {
      std::cout << loop.error().message() << "\n";
      continue;
    }
    spate::Timer timer{**loop, [](spate::Timer& self) { self.stop(); }};
    timer.start(10ms, 10ms);
    spate::must((*loop)->run());
    const spate::KernelCalls calls = (*loop)->metrics().kernel_calls;
    std::cout << calls.wait << " waits, " << calls.modify << " changes\n";
  }
}
