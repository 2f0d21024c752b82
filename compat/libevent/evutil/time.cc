// Monotonic clocks, and dates in HTTP's format.
//
// Semantics: event2/util.h; probed: the clock of each flag, a timer that was never configured, and
// years without four digits.
#include <event2/util.h>
#include <sys/time.h>

#include <ctime>

#include "compat/libevent/memory.h"

// A zeroed one uses the wall clock, which jumps back when it is set back.
struct evutil_monotonic_timer {
  clockid_t clock;
  bool never_runs_back;
  timeval adjustment;  // The sum of the backward steps of the wall clock until now.
  timeval last;
};

namespace {

// Returns the clock for the hint flags: cheap and coarse by default.
clockid_t clock_for(int flags) {
  if ((flags & EV_MONOT_FALLBACK) != 0) {
    return CLOCK_REALTIME;
  }
  return (flags & EV_MONOT_PRECISE) != 0 ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE;
}

// When the wall clock steps back, the time stands still and continues from there.
void never_back(evutil_monotonic_timer& timer, timeval& now) {
  timeradd(&now, &timer.adjustment, &now);
  if (timercmp(&now, &timer.last, <)) {
    timeval back;
    timersub(&timer.last, &now, &back);
    timeradd(&timer.adjustment, &back, &timer.adjustment);
    now = timer.last;
  }
  timer.last = now;
}

const char* name_of(const char* const* names, int count, int index) {
  return index >= 0 && index < count ? names[index] : "???";
}

}  // namespace

evutil_monotonic_timer* evutil_monotonic_timer_new() {
  return static_cast<evutil_monotonic_timer*>(
      spate::libevent::allocate_zeroed(sizeof(evutil_monotonic_timer)));
}

void evutil_monotonic_timer_free(evutil_monotonic_timer* timer) {
  if (timer != nullptr) {
    spate::libevent::release(timer);
  }
}

int evutil_configure_monotonic_time(evutil_monotonic_timer* timer, int flags) {
  *timer = {clock_for(flags), (flags & EV_MONOT_FALLBACK) != 0, {}, {}};
  return 0;
}

int evutil_gettime_monotonic(evutil_monotonic_timer* timer, timeval* now) {
  timespec time;
  if (clock_gettime(timer->clock, &time) != 0) {
    return -1;
  }
  *now = {time.tv_sec, time.tv_nsec / 1000};
  if (timer->never_runs_back) {
    never_back(*timer, *now);
  }
  return 0;
}

int evutil_date_rfc1123(char* date, const size_t size, const tm* time) {
  static const char* const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static const char* const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  tm now;
  if (time == nullptr) {
    const std::time_t seconds = std::time(nullptr);
    time = gmtime_r(&seconds, &now);
  }
  return evutil_snprintf(date, size, "%s, %02d %s %4d %02d:%02d:%02d GMT",
                         name_of(days, 7, time->tm_wday), time->tm_mday,
                         name_of(months, 12, time->tm_mon), 1900 + time->tm_year, time->tm_hour,
                         time->tm_min, time->tm_sec);
}
