// Periodics: wall-clock watchers. Each runs as a timer on the monotonic clock, set by how far the
// wall clock is away from its time just now; when the distance between the two clocks jumps, all
// are set anew.
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

  bool empty() const { return nodes_.empty(); }
  // Once a turn: has the wall clock jumped?
  void check_clock();
  // The longest a wait may last, when nothing would interrupt it at a jump. While loop time stands
  // still the wall clock runs ahead of it, which shows as one jump after the other.
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
  Nanos distance_{0};  // Wall clock minus loop time, as of the last look.
  sys::Descriptor change_timer_;
  FdNode change_node_{};
};

}  // namespace spate
