// Counts SIGHUP until SIGINT.
//   signals            then: kill -HUP its process, and ctrl-C
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "spate/signal.h"

int main() {
  auto loop = spate::must(spate::Loop::create());
  int hangups = 0;
  spate::Signal hangup{*loop, [&] { std::cout << "SIGHUP " << ++hangups << std::endl; }};
  spate::Signal interrupt{*loop, [&] { loop->stop(); }};
  spate::must(hangup.start(SIGHUP));
  spate::must(interrupt.start(SIGINT));

  std::cout << "process " << ::getpid() << std::endl;
  loop->run();
  std::cout << "stopped after " << hangups << std::endl;
}
