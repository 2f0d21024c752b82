// spate_timer. While it is inactive, the deadline is the remaining time, relative to the next
// start.
#include <algorithm>

#include "c/watchers.h"

using namespace spate;
using c::TimerPart;

namespace {

std::int64_t bounded(std::int64_t span) {
  return std::clamp<std::int64_t>(span, 0, kForever.count());
}

bool is_active(const TimerPart& timer) { return timer.node.head.active != 0; }

std::int64_t left_of(const TimerPart& timer) {
  if (!is_active(timer)) return timer.node.deadline == kParked ? 0 : timer.node.deadline;
  const std::int64_t left = timer.node.deadline - c::core_behind(timer.loop).now().count();
  return std::max<std::int64_t>(left, 0);
}

bool start_after(LoopCore& core, TimerPart& timer, std::int64_t after) {
  timer.node.deadline = deadline_after(core.now(), Nanos{after}).count();
  if (core.start_timer(timer.node)) return true;
  timer.node.deadline = after;
  return false;
}

// Moves the deadline of an active timer.
bool move_to(LoopCore& core, TimerPart& timer, std::int64_t after) {
  core.forget_pending(timer.node.head);
  if (core.restart_timer(timer.node, deadline_after(core.now(), Nanos{after}).count())) return true;
  timer.node.deadline = after;
  c::settle(timer.node.head, timer.loop);
  return false;
}

}  // namespace

void spate_timer_init(spate_timer* timer, spate_loop* loop, spate_timer_fn* callback, void* data) {
  c::init<TimerPart>(timer, loop, callback, data);
}

int spate_timer_set(spate_timer* timer, int64_t after, int64_t repeat) {
  spate_timer_set_repeat(timer, repeat);
  TimerPart& part = c::part_of<TimerPart>(timer);
  if (is_active(part)) return spate_timer_restart(timer, after);
  part.node.deadline = bounded(after);
  return 0;
}

int spate_timer_start(spate_timer* timer) {
  TimerPart& part = c::part_of<TimerPart>(timer);
  return c::start_by(part, [&](LoopCore& core) {
    return c::out_of_memory_unless(start_after(core, part, left_of(part)));
  });
}

void spate_timer_stop(spate_timer* timer) {
  TimerPart& part = c::part_of<TimerPart>(timer);
  c::stop_by(part, [&](LoopCore& core) {
    const std::int64_t left = left_of(part);
    core.stop_timer(part.node);
    part.node.deadline = left;
  });
}

int spate_timer_restart(spate_timer* timer, int64_t after) {
  TimerPart& part = c::part_of<TimerPart>(timer);
  LoopCore& core = c::core_behind(part.loop);
  if (is_active(part)) return c::out_of_memory_unless(move_to(core, part, bounded(after)));
  core.forget_pending(part.node.head);
  part.node.deadline = bounded(after);
  return spate_timer_start(timer);
}

int spate_timer_again(spate_timer* timer) {
  const std::int64_t repeat = spate_timer_repeat(timer);
  if (repeat > 0) return spate_timer_restart(timer, repeat);
  spate_timer_stop(timer);
  return 0;
}

void spate_timer_set_repeat(spate_timer* timer, int64_t repeat) {
  c::part_of<TimerPart>(timer).node.repeat = bounded(repeat);
}

int64_t spate_timer_repeat(const spate_timer* timer) {
  return c::part_of<TimerPart>(timer).node.repeat;
}

int64_t spate_timer_remaining(const spate_timer* timer) {
  return left_of(c::part_of<TimerPart>(timer));
}
