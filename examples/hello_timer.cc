// A timer that calls back three times.
#include <cstdio>

#include "spate/timer.h"

using namespace std::chrono_literals;

int main() {
  auto loop = spate::must(spate::Loop::create());
  int ticks = 0;
  spate::Timer timer{*loop, [&ticks](spate::Timer& self) {
                       std::printf("tick %d\n", ++ticks);
                       if (ticks == 3) self.stop();
                     }};
  timer.start(10ms, 10ms);
  loop->run();
}
