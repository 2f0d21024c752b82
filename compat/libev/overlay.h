// The program's watchers as the nodes of spate's core: ev_io is a FdNode, ev_timer a TimerNode.
// layout.cc checks that their members coincide.
#pragma once

#include <cstring>

#include "compat/libev/ev_api.h"
#include "spate/layer/node.h"

namespace spate::libev {

template <class Watcher>
ev_watcher& base(Watcher& watcher) {
  return reinterpret_cast<ev_watcher&>(watcher);
}

// Returns an internal watcher.
inline ev_watcher watcher_with(int priority, void (*callback)(struct ev_loop*, ev_watcher*, int)) {
  ev_watcher watcher{};
  watcher.priority = priority;
  watcher.cb = callback;
  return watcher;
}

inline FdNode& node_of(ev_io& io) { return reinterpret_cast<FdNode&>(io); }
inline TimerNode& node_of(ev_timer& timer) { return reinterpret_cast<TimerNode&>(timer); }
inline ev_watcher& watcher_of(FdNode& node) { return reinterpret_cast<ev_watcher&>(node); }

// A program may set any number, which must be in range once the watcher starts. This also keeps
// kDirect, which is core's, out of the program's watchers.
inline void clamp_priority(ev_watcher& watcher) {
  const auto level = static_cast<unsigned int>(watcher.priority - EV_MINPRI);
  if (level <= EV_MAXPRI - EV_MINPRI) [[likely]]
    return;
  watcher.priority = watcher.priority > EV_MAXPRI ? EV_MAXPRI : EV_MINPRI;
}

// The eight bytes that the program uses as `at` hold a deadline in nanoseconds while core has the
// timer, and relative seconds otherwise.
inline double seconds_at(const ev_timer& timer) {
  double seconds;
  std::memcpy(&seconds, &timer.at, sizeof(seconds));
  return seconds;
}
inline void set_seconds_at(ev_timer& timer, double seconds) {
  std::memcpy(&timer.at, &seconds, sizeof(seconds));
}
inline std::int64_t deadline_at(const ev_timer& timer) {
  std::int64_t deadline;
  std::memcpy(&deadline, &timer.at, sizeof(deadline));
  return deadline;
}
inline void set_deadline_at(ev_timer& timer, std::int64_t deadline) {
  std::memcpy(&timer.at, &deadline, sizeof(deadline));
}

}  // namespace spate::libev
