// The watchers of spate.h as core's nodes: each C struct is a node, followed by members for C.
//
// `loop` is a spate_loop; its lowest bits say whether the watcher keeps the loop alive.
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

// Fills the room that C's struct has behind the node, on machines with small pointers.
template <class NodeType, class Face>
using FreeRoom = NodeRoom<offsetof(Face, callback) - sizeof(NodeType)>;

struct alignas(spate_io) IoPart {
  using Face = spate_io;
  FdNode node;
  [[no_unique_address]] FreeRoom<FdNode, Face> room;
  spate_io_fn* callback;
  std::uintptr_t loop;
};
struct alignas(spate_timer) TimerPart {
  using Face = spate_timer;
  TimerNode node;
  [[no_unique_address]] FreeRoom<TimerNode, Face> room;
  spate_timer_fn* callback;
  std::uintptr_t loop;
};
struct alignas(spate_async) AsyncPart {
  using Face = spate_async;
  AsyncNode node;
  [[no_unique_address]] FreeRoom<AsyncNode, Face> room;
  spate_async_fn* callback;
  std::uintptr_t loop;
};
struct alignas(spate_signal) SignalPart {
  using Face = spate_signal;
  SignalNode node;
  [[no_unique_address]] FreeRoom<SignalNode, Face> room;
  spate_signal_fn* callback;
  std::uintptr_t loop;
};
struct alignas(spate_hook) HookPart {
  using Face = spate_hook;
  Node node;
  [[no_unique_address]] FreeRoom<Node, Face> room;
  spate_hook_fn* callback;
  std::uintptr_t loop;
  int kind;
  std::uint32_t reserved;
};
struct alignas(spate_periodic) PeriodicPart {
  using Face = spate_periodic;
  PeriodicNode node;
  [[no_unique_address]] FreeRoom<PeriodicNode, Face> room;
  spate_periodic_fn* callback;
  std::uintptr_t loop;
  spate_reschedule_fn* reschedule;
};
struct alignas(spate_child) ChildPart {
  using Face = spate_child;
  ChildNode node;
  [[no_unique_address]] FreeRoom<ChildNode, Face> room;
  spate_child_fn* callback;
  std::uintptr_t loop;
};
struct alignas(spate_stat) StatPart {
  using Face = spate_stat;
  StatNode node;
  [[no_unique_address]] FreeRoom<StatNode, Face> room;
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

inline constexpr std::uintptr_t kWeak = 1;       // It must not keep the loop alive.
inline constexpr std::uintptr_t kUncounted = 2;  // The loop does not count it at present.
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

// True if the loop points here. If not, the loop may be destroyed.
inline bool is_known(const Node& head) { return (head.active | head.pending) != 0; }

// Makes the loop count it again.
inline void count_in(std::uintptr_t& loop) {
  if ((loop & kUncounted) == 0) return;
  loop &= ~kUncounted;
  core_behind(loop).ref();
}
// Called when the watcher may have become inactive, by itself or by a stop.
inline void settle(const Node& head, std::uintptr_t& loop) {
  if (head.active == 0) count_in(loop);
}
// Makes the loop not count a weak watcher that is active.
inline void take_off(const Node& head, std::uintptr_t& loop) {
  if ((loop & kMarks) != kWeak || head.active == 0) return;
  loop |= kUncounted;
  core_behind(loop).unref();
}

// The callback for core.
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

// Starts an inactive watcher by `start`, which returns a code.
template <class Part, class Start>
int start_by(Part& part, const Start& start) {
  Node& head = head_of(part.node);
  if (head.active != 0) return 0;
  const int code = start(core_behind(part.loop));
  take_off(head, part.loop);
  return code;
}
// Stops a watcher that the loop points to.
template <class Part, class Stop>
void stop_by(Part& part, const Stop& stop) {
  Node& head = head_of(part.node);
  if (!is_known(head)) return;
  stop(core_behind(part.loop));
  settle(head, part.loop);
}

// Sets members that must not change while active.
template <class Face, class Set>
int set_anew(Face* face, int (*start)(Face*), void (*stop)(Face*), const Set& set) {
  const bool was_active = spate_is_active(&face->watcher) != 0;
  stop(face);
  set();
  return was_active ? start(face) : 0;
}

}  // namespace spate::c
