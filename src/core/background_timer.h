// BackgroundTimer: a repeating Timer that does not keep its loop alive.
#pragma once

#include "spate/loop.h"
#include "spate/timer.h"

namespace spate {

// Must be stopped before its loop is destroyed.
class BackgroundTimer {
 public:
  BackgroundTimer(Loop& loop, Delegate<Timer> callback) : timer_(loop, callback) {}
  ~BackgroundTimer() { stop(); }
  BackgroundTimer(const BackgroundTimer&) = delete;
  BackgroundTimer& operator=(const BackgroundTimer&) = delete;

  // Expires first after `delay`, then every `interval`, which is more than zero. Has no effect
  // while active. Returns false when memory runs out.
  bool start(Nanos delay, Nanos interval) {
    if (is_active()) return true;
    if (!timer_.start(delay, interval)) return false;
    timer_.loop().unref();
    return true;
  }
  bool start_repeating(Nanos interval) { return start(interval, interval); }
  // Postpones the next expiry to `delay` from now, if active and if that is later. This needs no
  // memory.
  void postpone(Nanos delay) {
    if (is_active() && delay > timer_.remaining()) (void)timer_.restart(delay);
  }
  void stop() {
    if (!is_active()) return;
    timer_.stop();
    timer_.loop().ref();
  }
  bool is_active() const { return timer_.is_active(); }

 private:
  Timer timer_;
};

}  // namespace spate
