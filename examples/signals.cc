// Counts one signal, ends at another, and leaves the process's signals as it found them.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "spate/signal.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());

  int hangups = 0;
  spate::Signal hangup{*loop, [&hangups] { std::printf("SIGHUP number %d\n", ++hangups); }};
  spate::Signal terminate{*loop, [](spate::Signal& self) {
                            std::printf("SIGTERM: stopping\n");
                            self.loop().stop();
                          }};
  if (hangup.start(SIGHUP) || terminate.start(SIGTERM)) return 1;

  spate::Timer sender{*loop, [&hangups](spate::Timer& self) {
                        ::kill(::getpid(), hangups < 3 ? SIGHUP : SIGTERM);
                        self.restart(5ms);
                      }};
  sender.start(5ms);
  loop->run();

  hangup.stop();
  struct sigaction now{};
  ::sigaction(SIGHUP, nullptr, &now);
  const bool is_default_again = now.sa_handler == SIG_DFL;
  return hangups >= 3 && is_default_again ? 0 : 1;
}
