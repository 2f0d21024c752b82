// spate_periodic.
#include "c/watchers.h"

using namespace spate;
using c::PeriodicPart;

namespace {

WallTime ask(void* context, WallTime now) {
  auto& part = *static_cast<PeriodicPart*>(context);
  auto* face = static_cast<spate_periodic*>(context);
  return WallTime{Nanos{part.reschedule(face, now.time_since_epoch().count())}};
}

}  // namespace

void spate_periodic_init(spate_periodic* periodic, spate_loop* loop, spate_periodic_fn* callback,
                         void* data) {
  c::init<PeriodicPart>(periodic, loop, callback, data);
}

int spate_periodic_set(spate_periodic* periodic, int64_t offset, int64_t interval,
                       spate_reschedule_fn* reschedule) {
  if (interval < 0) return -EINVAL;
  return c::set_anew(periodic, spate_periodic_start, spate_periodic_stop, [&] {
    PeriodicPart& part = c::part_of<PeriodicPart>(periodic);
    part.node.offset = offset;
    part.node.interval = interval;
    part.node.reschedule = reschedule != nullptr ? ask : nullptr;
    part.node.reschedule_context = &part;
    part.reschedule = reschedule;
  });
}

int spate_periodic_start(spate_periodic* periodic) {
  PeriodicPart& part = c::part_of<PeriodicPart>(periodic);
  return c::start_by(part, [&](LoopCore& core) {
    return c::out_of_memory_unless(static_cast<NodeLoop&>(core).start(part.node));
  });
}

void spate_periodic_stop(spate_periodic* periodic) {
  PeriodicPart& part = c::part_of<PeriodicPart>(periodic);
  c::stop_by(part, [&](LoopCore& core) { static_cast<NodeLoop&>(core).stop(part.node); });
}

int64_t spate_periodic_at(const spate_periodic* periodic) {
  return c::part_of<PeriodicPart>(periodic).node.at;
}
