// Periodics: the ev_periodic watchers of one loop, which live on the wall clock.
//
// A heap by `at`, and one timer of core's for the earliest, which only ends the wait: what is due
// is decided by the wall clock afterwards. A timerfd tells when somebody sets the clock; without
// it, a jump is found when the loop wakes up, which is then once a minute at least.
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
  // Queues what is due, the earliest to be called first, and sets the timer for the next.
  void feed_due();
  // The wall clock has been looked at; if it has jumped, all times are worked out anew.
  void on_wall_read(bool has_jumped);
  // Whether somebody has set the clock, until rearm_clock(), which is true.
  bool clock_was_set() const { return clock_was_set_; }
  bool rearm_clock();
  void after_fork();
  // Gives back what core and the kernel hold.
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
  FdNode clock_{};  // The timerfd; -1 when there is none.
  bool clock_was_set_ = false;
  double alarm_at_ = 0;  // The time that the timer is set for.
};

}  // namespace spate::libev
