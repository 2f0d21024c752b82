// Periodics: the ev_periodic watchers of one loop, which live on the wall clock.
//
// A heap by `at`, and one core timer for the earliest, which only ends the wait: the wall clock
// then decides which watchers are due. A timerfd reports changes of the clock; without it, a jump
// is found when the loop wakes up, which is then at least once a minute.
//
// Semantics: ev(3) "ev_periodic", "EVFLAG_NOTIMERFD".
#pragma once

#include <vector>

#include "compat/libev/overlay.h"

namespace spate::libev {

class Periodics {
 public:
  explicit Periodics(struct ev_loop& loop);

  void start(ev_periodic& periodic);
  void stop(ev_periodic& periodic);

  bool empty() const { return heap_.empty(); }
  // Queues due watchers, so that the earliest is called first, and sets the timer for the next.
  void feed_due();
  // Called after the wall clock was read; if it has jumped, all times are computed again.
  void on_wall_read(bool has_jumped);
  // Returns true if the clock was set; rearm_clock(), which returns true, resets it.
  bool clock_was_set() const { return clock_was_set_; }
  [[nodiscard]] bool rearm_clock();
  void after_fork();
  // Releases the resources of core and of the kernel.
  void close();
  bool is_consistent() const;

 private:
  static ev_watcher& head(ev_periodic& periodic) { return base(periodic); }
  void reschedule(ev_periodic& periodic);
  void advance(ev_periodic& periodic);
  void remove(ev_periodic& periodic);
  void sift_up(std::size_t hole, ev_periodic* periodic);
  void sift_down(std::size_t hole, ev_periodic* periodic);
  void set(std::size_t i, ev_periodic* periodic);
  void reschedule_all();
  void set_alarm();
  void watch_clock();
  void forget_clock();

  struct ev_loop& loop_;
  std::vector<ev_periodic*> heap_;
  std::vector<ev_periodic*> due_;
  TimerNode alarm_{};
  FdNode clock_{};  // The timerfd; -1 if it is missing.
  bool clock_was_set_ = false;
  double alarm_at_ = 0;  // The time that the timer is set for.
};

}  // namespace spate::libev
