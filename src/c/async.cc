// spate_async.
#include "c/watchers.h"

using namespace spate;
using c::AsyncPart;

void spate_async_init(spate_async* async, spate_loop* loop, spate_async_fn* callback, void* data) {
  c::init<AsyncPart>(async, loop, callback, data);
}

int spate_async_start(spate_async* async) {
  AsyncPart& part = c::part_of<AsyncPart>(async);
  return c::start_by(
      part, [&](LoopCore& core) { return c::out_of_memory_unless(core.start_async(part.node)); });
}

// The loop also points to an inactive node that was sent.
void spate_async_stop(spate_async* async) {
  AsyncPart& part = c::part_of<AsyncPart>(async);
  if (!c::is_known(part.node.head) && part.node.sent.load() == AsyncNode::kUnsent) return;
  c::core_behind(part.loop).stop_async(part.node);
  c::settle(part.node.head, part.loop);
}

void spate_async_send(spate_async* async) {
  AsyncPart& part = c::part_of<AsyncPart>(async);
  core_of(c::loop_behind(part.loop).loop()).send(part.node);
}

int spate_async_is_sent(const spate_async* async) {
  const AsyncPart& part = c::part_of<AsyncPart>(const_cast<spate_async*>(async));
  return part.node.sent.load() == AsyncNode::kSent ? 1 : 0;
}
