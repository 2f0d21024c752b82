// spate_child.
#include "c/child.h"

#include <cerrno>

#include "c/watchers.h"
#include "core/children.h"

using namespace spate;
using c::ChildPart;

namespace spate::c {

namespace {

template <class F>
void for_each_child(LoopCore& core, const F& show) {
  core.children().for_each([&](ChildNode& node) {
    if (node.head.callback == &enter<ChildPart>) show(reinterpret_cast<ChildPart&>(node));
  });
}

}  // namespace

void count_children(LoopCore& core) {
  for_each_child(core, [](ChildPart& child) { count_in(child.loop); });
}

void discount_children(LoopCore& core) {
  for_each_child(core, [](ChildPart& child) { take_off(child.node.head, child.loop); });
}

}  // namespace spate::c

void spate_child_init(spate_child* child, spate_loop* loop, spate_child_fn* callback, void* data) {
  c::init<ChildPart>(child, loop, callback, data);
}

int spate_child_set(spate_child* child, int pid, int trace) {
  if (!Children::may_watch(pid)) return -EINVAL;
  return c::set_anew(child, spate_child_start, spate_child_stop, [&] {
    ChildNode& node = c::part_of<ChildPart>(child).node;
    node.pid = pid;
    node.trace = trace != 0;
    node.status = -1;
  });
}

int spate_child_start(spate_child* child) {
  ChildPart& part = c::part_of<ChildPart>(child);
  return c::start_by(part, [&](LoopCore& core) {
    part.node.status = -1;
    return c::to_code(static_cast<NodeLoop&>(core).start(part.node));
  });
}

void spate_child_stop(spate_child* child) {
  ChildPart& part = c::part_of<ChildPart>(child);
  c::stop_by(part, [&](LoopCore& core) { static_cast<NodeLoop&>(core).stop(part.node); });
}

int spate_child_pid(const spate_child* child) { return c::part_of<ChildPart>(child).node.pid; }
int spate_child_status(const spate_child* child) {
  return c::part_of<ChildPart>(child).node.status;
}
