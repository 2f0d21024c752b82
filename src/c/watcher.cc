#include "c/watcher.h"

#include <algorithm>

#include "c/watchers.h"
#include "spate/named_callback.h"

using namespace spate;

namespace spate::c {

namespace {

struct Kind {
  Node::Callback enter;
  int (*start)(spate_watcher* watcher);
  void (*stop)(spate_watcher* watcher);
  std::size_t loop;  // Offset of the word.
};

template <class Part, int (*start)(typename Part::Face*), void (*stop)(typename Part::Face*)>
constexpr Kind kind() {
  using Face = typename Part::Face;
  return {
      &enter<Part>, [](spate_watcher* watcher) { return start(reinterpret_cast<Face*>(watcher)); },
      [](spate_watcher* watcher) { stop(reinterpret_cast<Face*>(watcher)); }, offsetof(Part, loop)};
}

// A watcher without keepalive is listed only while the loop counts it.
template <class Part>
void describe(const Node& node, ActiveInfo& info) {
  info.id = &node;
  if ((reinterpret_cast<const Part&>(node).loop & kUncounted) != 0) info.count = 0;
}

void describe_hook(const Node& node, ActiveInfo& info) {
  describe<HookPart>(node, info);
  const int kind = reinterpret_cast<const HookPart&>(node).kind;
  if (kind == SPATE_HOOK_CHECK) info.kind = ActiveKind::check;
  if (kind == SPATE_HOOK_IDLE) info.kind = ActiveKind::idle;
}

constexpr Kind kKinds[] = {
    kind<IoPart, spate_io_start, spate_io_stop>(),
    kind<TimerPart, spate_timer_start, spate_timer_stop>(),
    kind<AsyncPart, spate_async_start, spate_async_stop>(),
    kind<SignalPart, spate_signal_start, spate_signal_stop>(),
    kind<HookPart, spate_hook_start, spate_hook_stop>(),
    kind<PeriodicPart, spate_periodic_start, spate_periodic_stop>(),
    kind<ChildPart, spate_child_start, spate_child_stop>(),
    kind<StatPart, spate_stat_start, spate_stat_stop>(),
};

const Kind* find_kind(const Node& node) {
  const Kind* kind = std::ranges::find(kKinds, node.callback, &Kind::enter);
  return kind == std::end(kKinds) ? nullptr : kind;
}

const Kind& kind_of(const spate_watcher& watcher) {
  const Kind* kind = find_kind(node_of(watcher));
  SPATE_ASSERT(kind != nullptr, "not a watcher: initialize it with spate_..._init()");
  return *kind;
}

std::uintptr_t& loop_of(spate_watcher& watcher) {
  char* const at = reinterpret_cast<char*>(&watcher) + kind_of(watcher).loop;
  return *reinterpret_cast<std::uintptr_t*>(at);
}

std::uintptr_t loop_of(const spate_watcher& watcher) {
  return loop_of(const_cast<spate_watcher&>(watcher));
}

LoopCore& core_of(spate_watcher& watcher) { return core_behind(loop_of(watcher)); }

bool is_io(const spate_watcher& watcher) { return node_of(watcher).callback == &enter<IoPart>; }

FdNode& fd_node_of(spate_watcher& watcher) { return reinterpret_cast<IoPart&>(watcher).node; }

bool counts(spate_watcher& watcher) {
  if (node_of(watcher).callback != &enter<HookPart>) return true;
  const int kind = reinterpret_cast<HookPart&>(watcher).kind;
  return kind != SPATE_HOOK_FORK && kind != SPATE_HOOK_CLEANUP;
}

}  // namespace

void name_watchers() {
  static const NamedCallback names[] = {
      {&enter<IoPart>, ActiveKind::io, describe<IoPart>},
      {&enter<TimerPart>, ActiveKind::timer, describe<TimerPart>},
      {&enter<AsyncPart>, ActiveKind::async, describe<AsyncPart>},
      {&enter<SignalPart>, ActiveKind::signal, describe<SignalPart>},
      {&enter<HookPart>, ActiveKind::prepare, describe_hook},
      {&enter<PeriodicPart>, ActiveKind::periodic, describe<PeriodicPart>},
      {&enter<ChildPart>, ActiveKind::child, describe<ChildPart>},
      {&enter<StatPart>, ActiveKind::stat, describe<StatPart>},
  };
}

bool is_watcher(const Node& node) { return find_kind(node) != nullptr; }

void settle(spate_watcher& watcher) { settle(node_of(watcher), loop_of(watcher)); }

}  // namespace spate::c

int spate_start(spate_watcher* watcher) { return c::kind_of(*watcher).start(watcher); }
void spate_stop(spate_watcher* watcher) { c::kind_of(*watcher).stop(watcher); }

spate_loop* spate_watcher_loop(const spate_watcher* watcher) {
  return &c::loop_behind(c::loop_of(*watcher));
}

int spate_is_active(const spate_watcher* watcher) { return c::node_of(*watcher).active != 0; }

// Ready descriptors are not queued unless this is called, so it asks the loop.
int spate_is_pending(spate_watcher* watcher) {
  Node& node = c::node_of(*watcher);
  if (!c::is_known(node)) return 0;
  if (c::is_io(*watcher)) return c::core_of(*watcher).is_pending(c::fd_node_of(*watcher));
  return node.pending != 0;
}

int spate_feed(spate_watcher* watcher, uint32_t events) {
  LoopCore& core = c::core_of(*watcher);
  return c::out_of_memory_unless(core.feed(c::node_of(*watcher), static_cast<Events>(events)));
}

uint32_t spate_clear_pending(spate_watcher* watcher) {
  Node& node = c::node_of(*watcher);
  if (!c::is_known(node)) return 0;
  LoopCore& core = c::core_of(*watcher);
  const Events events =
      c::is_io(*watcher) ? core.clear_pending(c::fd_node_of(*watcher)) : core.clear_pending(node);
  c::settle(*watcher);
  return static_cast<uint32_t>(events);
}

void spate_invoke(spate_watcher* watcher, uint32_t events) {
  Node& node = c::node_of(*watcher);
  node.callback(node.context, node, static_cast<Events>(events));
}

// The loop must know an io's priority before it becomes ready.
int spate_set_priority(spate_watcher* watcher, int priority) {
  spate_clear_pending(watcher);
  const bool starts_anew = c::is_io(*watcher) && spate_is_active(watcher) != 0;
  if (starts_anew) spate_stop(watcher);
  c::node_of(*watcher).priority = std::clamp(priority, kPriorityMin, kPriorityMax);
  return starts_anew ? spate_start(watcher) : 0;
}

int spate_priority(const spate_watcher* watcher) { return c::node_of(*watcher).priority; }

void spate_set_keepalive(spate_watcher* watcher, int keepalive) {
  std::uintptr_t& loop = c::loop_of(*watcher);
  if (!c::counts(*watcher)) return;
  if (keepalive == 0) {
    loop |= c::kWeak;
    return c::take_off(c::node_of(*watcher), loop);
  }
  c::count_in(loop);
  loop &= ~c::kWeak;
}

int spate_keepalive(const spate_watcher* watcher) { return (c::loop_of(*watcher) & c::kWeak) == 0; }
