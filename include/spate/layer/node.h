// The intrusive nodes below the watchers: the objects that the loop's tables point to.
//
// Programs that use Io, Timer and the rest do not need this header. It is for layers that keep
// their own structs without a second allocation: drop-in libraries, language bindings. A layer
// overlays a node on its struct, starts it with NodeLoop::start(), and receives events through a
// Dispatcher (layer.h).
//
// Ownership: the layer's. Between start and stop the node must not move, and the fields marked
// "core" are the loop's. Thread: the loop's. All nodes are standard-layout, and zero-filled memory
// is a valid inactive node.
//
// The order of the fields is chosen so that the nodes can lie inside libev's structs: active at 0,
// pending at 4, priority at 8, a hole at 12, the user's two words at 16 and 24, then the fields of
// the kind. FdNode at offset 40 with TimerNode at offset 88 lies in the private fields of
// libevent's 128-byte struct event. Core reads `context` and `callback` only in the default
// dispatch, and `repeat` only in the default expiry.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/events.h"
#include "spate/layer/node_room.h"

namespace spate {

// Space between a node's `context` and `callback`, for the layer. Normally empty (node_room.h).
template <std::size_t kBytes>
struct NodeRoom {
  alignas(void*) unsigned char bytes[kBytes];
};
template <>
struct NodeRoom<0> {};

struct Node {
  using Callback = void (*)(void* context, Node& node, Events events);

  std::uint32_t active;   // core: 0 when stopped.
  std::uint32_t pending;  // core: 0 when not queued, else 1 + its index in the pending queue.
  std::int32_t priority;  // -2 ... +2, higher first; clamped. Must not change while pending; that
                          // of an FdNode also not while active.
  std::uint32_t extra;    // core: for timers, position and order; for descriptors, the errno with
                          // which the kernel refused it, and until then free for the layer.
  void* context;          // The layer's; passed to `callback`.
  [[no_unique_address]] NodeRoom<kNodeRoom> room;

  Callback callback;  // The layer's; called by the default dispatch.
};

inline constexpr int kPriorityMin = -2;
inline constexpr int kPriorityMax = 2;
inline constexpr int kPriorityLevels = kPriorityMax - kPriorityMin + 1;

// A node with this priority is never queued: its callback runs while the loop is still collecting
// events. For internals of a layer that only translate (a wake-up descriptor, a merged timer). The
// callback must not call user code, nor start or stop nodes of the same descriptor. A direct node
// does not keep the loop alive.
inline constexpr std::int32_t kDirect = INT32_MIN;

// Readiness of a file descriptor. Any number of nodes may share one descriptor.
struct FdNode {
  Node head;
  FdNode* next;          // core: the next node of the same descriptor.
  int fd;                // Must not change while active.
  std::uint32_t events;  // Events that an Io may request, kEdge, and kFdIsNew or
                         // kFdIsNewUnlessWatched. Must not change while active.
};

// Must be set in `events` whenever `fd` was set, even to the same number: the descriptor may be
// another file now, and the kernel must register it again. start() clears it. (libev's
// EV__IOFDSET.)
inline constexpr std::uint32_t kFdIsNew = 0x80;

// As kFdIsNew, but has no effect if other nodes already watch the descriptor for all events of this
// one. (libevent's event_add.)
inline constexpr std::uint32_t kFdIsNewUnlessWatched = 0x40;

// A deadline on the loop's monotonic time.
struct TimerNode {
  Node head;
  std::int64_t deadline;  // Nanoseconds, as Loop::now(). Set before start(). Changed by
                          // NodeLoop::restart() only; kParked after the default expiry.
  std::int64_t repeat;    // Nanoseconds; 0 is one-shot. Read by the default expiry only.
};

// The deadline of a node that was stopped by NodeLoop::park() and is still linked.
inline constexpr std::int64_t kParked = INT64_MAX;

static_assert(sizeof(Node) == 16 + 2 * sizeof(void*) + kNodeRoom && offsetof(Node, context) == 16);
static_assert(sizeof(FdNode) == sizeof(Node) + sizeof(void*) + 8 &&
              sizeof(TimerNode) == sizeof(Node) + 16);
static_assert(offsetof(FdNode, next) == sizeof(Node) &&
              offsetof(FdNode, fd) == sizeof(Node) + sizeof(void*) &&
              offsetof(TimerNode, deadline) == sizeof(Node));

// The hooks of a turn; each is a list of nodes called in the order they were started.
enum class Hook { prepare, check, idle, fork, cleanup };
inline constexpr int kHookKinds = 5;

// One due event, as a Dispatcher takes it from the loop.
struct Due {
  Node* node;
  Events events;
};

}  // namespace spate
