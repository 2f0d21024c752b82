// A loop that continues independently in the parent and in the child of a fork.
#include <unistd.h>

#include <cstdio>

#include "spate/child.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

int main() {
  auto loop = spate::must(spate::Loop::create());
  int ticks = 0;
  spate::Timer timer{*loop, [&ticks](spate::Timer& self) {
                       std::printf("process %d: tick %d\n", ::getpid(), ++ticks);
                       if (ticks == 3) self.stop();
                     }};
  timer.start(10ms, 10ms);

  const pid_t pid = ::fork();
  if (pid == 0) {
    spate::must(loop->after_fork());
    loop->run();
    return 0;
  }
  spate::Child child{*loop, [](spate::Child& self) {
                       std::printf("process %d: exit code %d\n", self.pid(), self.exit_code());
                     }};
  spate::must(child.start(pid));
  loop->run();
  return child.exit_code();
}
