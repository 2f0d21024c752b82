// A loop that runs inside another one, as long as it has something to do.
#include <cstdio>
#include <memory>

#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

class Embedded {
 public:
  Embedded(spate::Loop& outer, spate::Loop& inner)
      : inner_(inner),
        prepare_(outer, spate::bind<&Embedded::announce>(this)),
        wake_(outer, spate::bind<&Embedded::turn>(this)),
        ready_(outer, spate::must(inner.poll_fd()), spate::Events::read,
               spate::bind<&Embedded::turn>(this)) {
    prepare_.start();
    ready_.start();
  }

 private:
  void announce() {
    const spate::Nanos wait = inner_.prepare_to_wait();
    if (wait < spate::kForever) {
      wake_.start(wait);
    } else {
      wake_.stop();
    }
  }
  void turn() {
    const bool goes_on = !inner_.run(spate::Run::no_wait) && inner_.has_work();
    if (goes_on) return;
    prepare_.stop();
    wake_.stop();
    ready_.stop();
  }

  spate::Loop& inner_;
  spate::Prepare prepare_;
  spate::Timer wake_;
  spate::Io ready_;
};

struct Ticker {
  const char* name;
  int ticks;
  void tick(spate::Timer& timer) {
    std::printf("%s tick %d\n", name, ++ticks);
    if (ticks == 3) timer.stop();
  }
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> outer = spate::must(spate::Loop::create());
  std::unique_ptr<spate::Loop> inner = spate::must(spate::Loop::create({.backend = "epoll"}));

  Ticker slow{"outer", 0};
  spate::Timer slow_timer{*outer, spate::bind<&Ticker::tick>(&slow)};
  slow_timer.start(20ms, 20ms);

  Ticker fast{"inner", 0};
  spate::Timer fast_timer{*inner, spate::bind<&Ticker::tick>(&fast)};
  fast_timer.start(7ms, 7ms);

  Embedded embedded{*outer, *inner};
  outer->run();
  return slow.ticks == 3 && fast.ticks == 3 ? 0 : 1;
}
