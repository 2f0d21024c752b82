// Periodics: wall-clock watchers. Each uses a timer on the monotonic clock, set to the current
// distance of the wall clock from its time. When the distance between the two clocks jumps, all
// timers are set again.
#pragma once

#include <cstdint>
#include <system_error>

#include "base/array.h"
#include "spate/periodic.h"
#include "sys/descriptor.h"

namespace spate {

class LoopCore;

class Periodics {
 public:
  explicit Periodics(LoopCore& loop);
  Periodics(const Periodics&) = delete;
  Periodics& operator=(const Periodics&) = delete;

  std::error_code start(PeriodicNode& node);
  void stop(PeriodicNode& node);
  void stop_all();
  void after_fork();

  template <class F>
  void for_each(const F& show) const {
    for (const PeriodicNode* node : nodes_) show(*node);
  }
  bool empty() const { return nodes_.empty(); }
  // Called once per turn: checks for a jump of the wall clock.
  void check_clock();
  // Returns the limit of a wait that a jump would not interrupt. While loop time stands still, the
  // wall clock advances against it, which looks like a series of jumps.
  Nanos longest_wait() const;

 private:
  static PeriodicNode& owner_of(Node& timer_head);

  Nanos clock_distance() const;
  static std::int64_t next_time(const PeriodicNode& node, std::int64_t now);
  void schedule(PeriodicNode& node, std::int64_t wall);
  void reschedule(PeriodicNode& node, std::int64_t wall);
  void on_timer(PeriodicNode& node);
  void watch_for_changes();
  void on_change();

  LoopCore& loop_;
  Array<PeriodicNode*> nodes_;
  Nanos distance_{0};  // Wall clock minus loop time, at the last check.
  sys::Descriptor change_timer_;
  FdNode change_node_{};
};

}  // namespace spate
