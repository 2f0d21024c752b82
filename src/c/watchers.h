// The watchers of spate.h as core's nodes: each struct of C's is one, with what C needs behind it.
//
// `loop` is a spate_loop, whose lowest bits say whether the watcher keeps it alive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "c/loop.h"
#include "spate/async.h"
#include "spate/child.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"

namespace spate::c {

struct IoPart {
  using Face = spate_io;
  FdNode node;
  spate_io_fn* callback;
  std::uintptr_t loop;
};
struct TimerPart {
  using Face = spate_timer;
  TimerNode node;
  spate_timer_fn* callback;
  std::uintptr_t loop;
};
struct AsyncPart {
  using Face = spate_async;
  AsyncNode node;
  spate_async_fn* callback;
  std::uintptr_t loop;
};
struct SignalPart {
  using Face = spate_signal;
  SignalNode node;
  spate_signal_fn* callback;
  std::uintptr_t loop;
};
struct HookPart {
  using Face = spate_hook;
  Node node;
  spate_hook_fn* callback;
  std::uintptr_t loop;
  int kind;
};
struct PeriodicPart {
  using Face = spate_periodic;
  PeriodicNode node;
  spate_periodic_fn* callback;
  std::uintptr_t loop;
  spate_reschedule_fn* reschedule;
};
struct ChildPart {
  using Face = spate_child;
  ChildNode node;
  spate_child_fn* callback;
  std::uintptr_t loop;
};
struct StatPart {
  using Face = spate_stat;
  StatNode node;
  spate_stat_fn* callback;
  std::uintptr_t loop;
};

template <class Part>
constexpr bool kFits = sizeof(Part) == sizeof(typename Part::Face) &&
                       offsetof(Part, callback) == offsetof(typename Part::Face, callback) &&
                       offsetof(Part, loop) == offsetof(typename Part::Face, loop_);
static_assert(kFits<IoPart> && kFits<TimerPart> && kFits<AsyncPart> && kFits<SignalPart> &&
              kFits<HookPart> && kFits<PeriodicPart> && kFits<ChildPart> && kFits<StatPart>);
static_assert(sizeof(IoPart) <= 64 && sizeof(TimerPart) <= 64 && sizeof(AsyncPart) <= 64 &&
              sizeof(SignalPart) <= 64 && sizeof(HookPart) <= 64);
static_assert(sizeof(spate_watcher) == sizeof(Node) &&
              offsetof(spate_watcher, data) == offsetof(Node, context));

inline constexpr std::uintptr_t kWeak = 1;       // It is not to keep the loop alive.
inline constexpr std::uintptr_t kUncounted = 2;  // It has been taken off what does.
inline constexpr std::uintptr_t kMarks = kWeak | kUncounted;

inline Node& head_of(Node& node) { return node; }
template <class NodeType>
Node& head_of(NodeType& node) {
  return node.head;
}

inline Node& node_of(spate_watcher& watcher) { return reinterpret_cast<Node&>(watcher); }
inline const Node& node_of(const spate_watcher& watcher) {
  return reinterpret_cast<const Node&>(watcher);
}
inline spate_loop& loop_behind(std::uintptr_t loop) {
  return *reinterpret_cast<spate_loop*>(loop & ~kMarks);
}
inline LoopCore& core_behind(std::uintptr_t loop) { return loop_behind(loop).core(); }

// The loop points here. If not, it may have gone.
inline bool is_known(const Node& head) { return (head.active | head.pending) != 0; }

// The loop counts it as any other.
inline void count_in(std::uintptr_t& loop) {
  if ((loop & kUncounted) == 0) return;
  loop &= ~kUncounted;
  core_behind(loop).ref();
}
// So it does once the watcher is inactive: by itself, or stopped.
inline void settle(const Node& head, std::uintptr_t& loop) {
  if (head.active == 0) count_in(loop);
}
// A weak one that is active is taken off.
inline void take_off(const Node& head, std::uintptr_t& loop) {
  if ((loop & kMarks) != kWeak || head.active == 0) return;
  loop |= kUncounted;
  core_behind(loop).unref();
}

// What core calls.
template <class Part>
void enter(void*, Node& head, Events events) {
  auto& part = reinterpret_cast<Part&>(head);
  settle(head, part.loop);
  if (part.callback == nullptr) return;
  if constexpr (requires { part.node.serve(events); }) part.node.serve(events);
  part.callback(&loop_behind(part.loop), reinterpret_cast<typename Part::Face*>(&part),
                static_cast<std::uint32_t>(events));
}

template <class Part, class Callback>
Part& init(typename Part::Face* face, spate_loop* loop, Callback* callback, void* data) {
  auto* part = new (face) Part{};
  head_of(part->node).context = data;
  head_of(part->node).callback = &enter<Part>;
  part->callback = callback;
  part->loop = reinterpret_cast<std::uintptr_t>(loop);
  return *part;
}

template <class Part>
Part& part_of(typename Part::Face* face) {
  return reinterpret_cast<Part&>(*face);
}
template <class Part>
const Part& part_of(const typename Part::Face* face) {
  return reinterpret_cast<const Part&>(*face);
}

// Starts an inactive one by `start`, which returns a code.
template <class Part, class Start>
int start_by(Part& part, const Start& start) {
  Node& head = head_of(part.node);
  if (head.active != 0) return 0;
  const int code = start(core_behind(part.loop));
  take_off(head, part.loop);
  return code;
}
// And stops one of which the loop knows.
template <class Part, class Stop>
void stop_by(Part& part, const Stop& stop) {
  Node& head = head_of(part.node);
  if (!is_known(head)) return;
  stop(core_behind(part.loop));
  settle(head, part.loop);
}

// Sets what must not change while it is active.
template <class Face, class Set>
int set_anew(Face* face, int (*start)(Face*), void (*stop)(Face*), const Set& set) {
  const bool was_active = spate_is_active(&face->watcher) != 0;
  stop(face);
  set();
  return was_active ? start(face) : 0;
}

}  // namespace spate::c
