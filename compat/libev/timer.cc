// ev_timer: the struct is core's node; its deadline lies where the program has `at`.
//
// Semantics: ev(3) "ev_timer", "The special problem of being too early". A nanosecond is added to
// each deadline, since core calls timers that are due exactly now, and libev only those whose time
// has passed.
#include <cstdlib>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"
#include "compat/libev/seconds.h"

using spate::libev::base;
using spate::libev::clear_and;
using spate::libev::node_of;
using spate::libev::to_nanos;
using spate::libev::to_seconds;

namespace {

std::int64_t deadline_after(const struct ev_loop& loop, double seconds) {
  return loop.core->now().count() + to_nanos(seconds) + 1;
}

double remaining(const struct ev_loop& loop, std::int64_t deadline) {
  return to_seconds(deadline - 1 - loop.core->now().count());
}

[[gnu::cold, gnu::noinline]] void refuse(struct ev_loop& loop, ev_timer& timer, double seconds) {
  spate::libev::set_seconds_at(timer, seconds);
  loop.pending.feed(base(timer), EV_ERROR | EV_TIMER);
}

[[gnu::always_inline]] inline void start_after(struct ev_loop& loop, ev_timer& timer,
                                               double seconds) {
  spate::libev::set_deadline_at(timer, deadline_after(loop, seconds));
  if (!loop.core->start(node_of(timer))) refuse(loop, timer, seconds);
}

}  // namespace

spate::libev::DueTimers::~DueTimers() { std::free(timers_); }

void spate::libev::DueTimers::make_room() {
  constexpr std::size_t kFirstCapacity = 64;
  capacity_ = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
  void* const timers = std::realloc(timers_, capacity_ * sizeof(ev_watcher*));
  require(timers != nullptr, "out of memory for due timers");
  timers_ = static_cast<ev_watcher**>(timers);
}

// Called by core for a node that it has just deactivated.
void ev_loop::expired(spate::Loop& loop, spate::TimerNode& node) {
  auto& timer = reinterpret_cast<ev_timer&>(node);
  timers_due.push(base(timer));
  if (timer.repeat > 0) return repeat(loop, timer);
  spate::libev::set_seconds_at(timer, remaining(*this, spate::libev::deadline_at(timer)));
}

void ev_loop::repeat(spate::Loop& loop, ev_timer& timer) {
  const std::int64_t now = loop.now().count();
  const std::int64_t next = spate::libev::deadline_at(timer) + to_nanos(timer.repeat);
  spate::libev::set_deadline_at(timer, next > now ? next : now + 1);
  spate::libev::require(loop.start(node_of(timer)), "out of memory for a repeating timer");
}

void ev_timer_start(struct ev_loop* loop, ev_timer* timer) noexcept {
  if (timer->active != 0) return;
  spate::libev::clamp_priority(base(*timer));
  start_after(*loop, *timer, spate::libev::seconds_at(*timer));
}

void ev_timer_stop(struct ev_loop* loop, ev_timer* timer) noexcept {
  if (timer->pending != 0) [[unlikely]]
    return clear_and(ev_timer_stop, *loop, *timer);
  if (timer->active == 0) return;
  // Core finds a node by its place, not by its deadline. So the call is the last one, and no
  // register is saved for it.
  spate::libev::set_seconds_at(*timer, remaining(*loop, spate::libev::deadline_at(*timer)));
  loop->core->stop(node_of(*timer));
}

// Core may read an inactive node only to start it: the rest is the program's memory.
void ev_timer_again(struct ev_loop* loop, ev_timer* timer) noexcept {
  if (timer->pending != 0) [[unlikely]]
    return clear_and(ev_timer_again, *loop, *timer);
  const double repeat = timer->repeat;
  if (timer->active != 0) {
    if (repeat != 0) {
      loop->core->restart(node_of(*timer), deadline_after(*loop, repeat));
    } else {
      ev_timer_stop(loop, timer);
    }
  } else if (repeat != 0) {
    spate::libev::clamp_priority(base(*timer));
    start_after(*loop, *timer, repeat);
  }
}

ev_tstamp ev_timer_remaining(struct ev_loop* loop, ev_timer* timer) noexcept {
  return timer->active != 0 ? remaining(*loop, spate::libev::deadline_at(*timer))
                            : spate::libev::seconds_at(*timer);
}
