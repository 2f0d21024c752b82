// The memory layout of a struct event.
//
// Programs embed the struct, and read the fields that were documented once: flags, callback,
// argument, descriptor, base, events and result. All other bytes belong to the library, and hold
// spate's nodes, so that an event needs no further memory:
//
//     0   the links of the queue of active events (active_queue.h)
//    16   flags, priority, closure, callback and argument, as the header has them
//    40   FdNode. Its `context` lies under ev_fd and its `callback` under ev_base; spate reads
//         neither, because a layer with a Dispatcher gets the node itself. Without a watched
//         descriptor its last 16 bytes are links (below), and for signals `extra` the raises.
//    88   TimerNode. Its `context` lies under ev_events and ev_res, its `callback` holds the
//         interval, its `repeat` would be beyond the struct and is never read.
//
// layout.cc checks the numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat/libevent/event_api.h"
#include "spate/layer/node.h"

namespace spate::libevent {

inline constexpr std::size_t kFdNode = 40;
inline constexpr std::size_t kTimerNode = 88;
inline constexpr std::size_t kLinks = kFdNode + offsetof(FdNode, next);
inline constexpr std::size_t kInterval = kTimerNode + offsetof(Node, callback);

// The action when the event's turn comes.
enum class Closure : std::uint8_t { plain, signal, persist, finalize, finalize_and_free };

// The links of an inserted event that no FdNode represents: signals, and descriptors that are not
// watched. They overlap members of the FdNode, hence the attribute.
struct [[gnu::may_alias]] Links {
  event* next;
  event** previous;  // The pointer to this event.
};

template <class T>
T& part_of(event& ev, std::size_t offset) {
  return *reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(&ev) + offset);
}
inline event& event_around(void* part, std::size_t offset) {
  return *reinterpret_cast<event*>(static_cast<unsigned char*>(part) - offset);
}

inline FdNode& fd_node(event& ev) { return part_of<FdNode>(ev, kFdNode); }
inline TimerNode& timer_node(event& ev) { return part_of<TimerNode>(ev, kTimerNode); }
inline event& event_of(FdNode& node) { return event_around(&node, kFdNode); }
inline event& event_of(TimerNode& node) { return event_around(&node, kTimerNode); }
inline event& event_of(event_callback& callback) { return event_around(&callback, 0); }
inline Links& links(event& ev) { return part_of<Links>(ev, kLinks); }

inline short& flags_of(event& ev) { return ev.ev_evcallback.evcb_flags; }
inline bool has_flag(event& ev, int flag) { return (flags_of(ev) & flag) != 0; }
inline void set_flag(event& ev, int flag) {
  flags_of(ev) = static_cast<short>(flags_of(ev) | flag);
}
inline void clear_flag(event& ev, int flag) {
  flags_of(ev) = static_cast<short>(flags_of(ev) & ~flag);
}

inline Closure closure_of(const event& ev) {
  return static_cast<Closure>(ev.ev_evcallback.evcb_closure);
}
inline void set_closure(event& ev, Closure closure) {
  ev.ev_evcallback.evcb_closure = static_cast<std::uint8_t>(closure);
}

// Clears all private bytes, except the links of the queue, which have no meaning until they are
// set.
inline void clear_nodes(event& ev) {
  struct [[gnu::may_alias]] Nodes {
    std::uint64_t words[(sizeof(event) - kFdNode) / 8];
  };
  part_of<Nodes>(ev, kFdNode) = {};
}

// How often the callback of a signal event is due.
inline std::uint32_t& raises_of(event& ev) { return fd_node(ev).head.extra; }

// The timeout of a persistent event, as in timeval.h; 0: none. Stored negated: spate compares this
// word with the address of a function, which is never negative.
inline std::int64_t interval_of(event& ev) {
  using Word [[gnu::may_alias]] = std::int64_t;
  return -part_of<Word>(ev, kInterval);
}
inline void set_interval(event& ev, std::int64_t interval) {
  using Word [[gnu::may_alias]] = std::int64_t;
  part_of<Word>(ev, kInterval) = -interval;
}

inline void link_first(event*& first, event& ev) {
  Links& place = links(ev);
  place.next = first;
  place.previous = &first;
  if (first != nullptr) links(*first).previous = &place.next;
  first = &ev;
}
inline void unlink(event& ev) {
  const Links place = links(ev);
  *place.previous = place.next;
  if (place.next != nullptr) links(*place.next).previous = place.previous;
}

}  // namespace spate::libevent
