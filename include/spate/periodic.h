// Periodic: calls back at times of the wall clock: once, at multiples of an interval, or at times
// that a function returns.
//
// It is never called before the wall clock shows the time. When the clock is set forward past
// several times, the callback is called once. When the clock is set back, it is called again at the
// same times. The loop notices a jump at once, also while it sleeps. Use reschedule_with() for
// "every day at three": days differ in length with daylight saving time.
//
// Threads: the loop's thread only.
#pragma once

#include "spate/watcher.h"

namespace spate {

struct PeriodicNode {
  using Reschedule = WallTime (*)(void* context, WallTime now);

  Node head;
  TimerNode timer;  // core: direct; runs on the monotonic clock and is restarted whenever the wall
                    // clock jumps.
  std::int64_t at;  // core: the next time, wall-clock nanoseconds since the epoch.
  std::int64_t offset;    // For start_at(): the time. With an interval: the phase.
  std::int64_t interval;  // Nanoseconds; 0 is once.
  Reschedule reschedule;  // If set, it alone decides the times.
  void* reschedule_context;
};

class Periodic : public Watcher<Periodic, PeriodicNode> {
 public:
  Periodic(Loop& loop, Delegate<Periodic> callback) : Watcher(loop, callback) {}
  ~Periodic() { stop(); }

  // Calls back once, when the wall clock shows `at` or later. Like the next two, starts or restarts
  // the watcher and returns false when memory runs out.
  bool start_at(WallTime at) {
    return start_with(at.time_since_epoch().count(), 0, nullptr, nullptr);
  }
  // Calls back when (time - offset) is a multiple of `interval`, which must be positive.
  bool start_every(Nanos interval, Nanos offset = Nanos{0}) {
    SPATE_ASSERT(interval > Nanos{0}, "the interval must be positive");
    return start_with(offset.count(), interval.count(), nullptr, nullptr);
  }
  // Calls back at the times that `next(context, now)` returns. They should be later than `now`; an
  // earlier one is due at once and is the last. `next` is called at the start, at each expiry, and
  // after a clock jump. It must not start, stop or destroy watchers.
  bool reschedule_with(PeriodicNode::Reschedule next, void* context = nullptr) {
    SPATE_ASSERT(next != nullptr, "`next` must not be null");
    return start_with(0, 0, next, context);
  }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }

  // Returns the next time; meaningful while active.
  WallTime at() const { return WallTime{Nanos{node_.at}}; }

 private:
  bool start_with(std::int64_t offset, std::int64_t interval, PeriodicNode::Reschedule next,
                  void* context) {
    stop();
    node_.offset = offset;
    node_.interval = interval;
    node_.reschedule = next;
    node_.reschedule_context = context;
    return loop_->start(node_);
  }
};

}  // namespace spate
