// spate_hook.
#include "c/watchers.h"

using namespace spate;
using c::HookPart;

static_assert(SPATE_HOOK_PREPARE == static_cast<int>(Hook::prepare) &&
              SPATE_HOOK_CHECK == static_cast<int>(Hook::check) &&
              SPATE_HOOK_IDLE == static_cast<int>(Hook::idle) &&
              SPATE_HOOK_FORK == static_cast<int>(Hook::fork) &&
              SPATE_HOOK_CLEANUP == static_cast<int>(Hook::cleanup));

void spate_hook_init(spate_hook* hook, spate_loop* loop, spate_hook_kind kind,
                     spate_hook_fn* callback, void* data) {
  SPATE_ASSERT(kind >= SPATE_HOOK_PREPARE && kind <= SPATE_HOOK_CLEANUP);
  c::init<HookPart>(hook, loop, callback, data).kind = kind;
}

int spate_hook_start(spate_hook* hook) {
  HookPart& part = c::part_of<HookPart>(hook);
  return c::start_by(part, [&](LoopCore& core) {
    return c::out_of_memory_unless(core.start_hook(static_cast<Hook>(part.kind), part.node));
  });
}

void spate_hook_stop(spate_hook* hook) {
  HookPart& part = c::part_of<HookPart>(hook);
  c::stop_by(part,
             [&](LoopCore& core) { core.stop_hook(static_cast<Hook>(part.kind), part.node); });
}
