// A timer that calls back three times.
#include <cstdio>
#include <memory>

#include "spate/timer.h"

using namespace std::chrono_literals;

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  int ticks = 0;
  spate::Timer timer{*loop, [&ticks](spate::Timer& self) {
                       std::printf("tick %d\n", ++ticks);
                       if (ticks == 3) self.stop();
                     }};
  timer.start(10ms, 10ms);
  loop->run();
  return ticks == 3 ? 0 : 1;
}
