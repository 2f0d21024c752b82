// The time of a base.
//
// Semantics: event2/event.h (event_base_gettimeofday_cached, event_base_update_cache_time); probed:
// the results outside the loop.
//
// spate reads the clock once after each wait. While callbacks run, that reading is the base's time.
#include "compat/libevent/event/base.h"
#include "compat/libevent/timeval.h"

using namespace spate::libevent;

void event_base::refresh_time() {
  if (time_is_cached_) loop_->update_now();
}

// Read again about every five seconds, not at each call: that would cost more than the clock.
std::int64_t event_base::to_wall_clock() {
  constexpr std::int64_t kGoodFor = 5'000'000'000;
  const std::int64_t monotonic = now();
  if (wall_read_at_ == INT64_MIN || monotonic - wall_read_at_ > kGoodFor) {
    wall_read_at_ = monotonic;
    wall_offset_ = spate::system_clock().wall().time_since_epoch().count() - read_clock();
  }
  return wall_offset_;
}

int event_base_gettimeofday_cached(event_base* base, timeval* time) {
  if (base == nullptr) base = current_base;
  if (base == nullptr) return gettimeofday(time, nullptr);
  const Holding holding(base->lock());
  if (!base->time_is_cached()) return gettimeofday(time, nullptr);
  *time = timeval_of(base->now() + base->to_wall_clock());
  return 0;
}

int event_base_update_cache_time(event_base* base) {
  if (base == nullptr) base = current_base;
  if (base == nullptr) return -1;
  const Holding holding(base->lock());
  base->refresh_time();
  return 0;
}

int event_gettime_monotonic(event_base* base, timeval* time) {
  if (base == nullptr || time == nullptr) return -1;
  *time = timeval_of(spate::system_clock().monotonic().count());
  return 0;
}
