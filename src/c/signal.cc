// spate_signal.
#include <cerrno>

#include "c/watchers.h"
#include "core/signals.h"

using namespace spate;
using c::SignalPart;

void spate_signal_init(spate_signal* signal, spate_loop* loop, spate_signal_fn* callback,
                       void* data) {
  c::init<SignalPart>(signal, loop, callback, data);
}

int spate_signal_set(spate_signal* signal, int signum) {
  if (!Signals::may_watch(signum)) return -EINVAL;
  return c::set_anew(signal, spate_signal_start, spate_signal_stop,
                     [&] { c::part_of<SignalPart>(signal).node.signum = signum; });
}

int spate_signal_start(spate_signal* signal) {
  SignalPart& part = c::part_of<SignalPart>(signal);
  return c::start_by(part, [&](LoopCore& core) {
    return c::to_code(static_cast<NodeLoop&>(core).start(part.node));
  });
}

void spate_signal_stop(spate_signal* signal) {
  SignalPart& part = c::part_of<SignalPart>(signal);
  c::stop_by(part, [&](LoopCore& core) { static_cast<NodeLoop&>(core).stop(part.node); });
}

int spate_signal_signum(const spate_signal* signal) {
  return c::part_of<SignalPart>(signal).node.signum;
}
