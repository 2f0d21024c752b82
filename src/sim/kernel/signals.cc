#include "sim/kernel/signals.h"

#include "core/signals.h"
#include "core/wakeup.h"
#include "sim/kernel/kernel.h"

namespace spate::sim {

// The library's handler would raise the signal in the loops of all hosts. The host of a loop is
// that of its wake-up descriptor.
bool raise_signal(const Kernel& kernel, int host, int signum) {
  bool is_watched = false;
  for (const std::atomic<Signals*>& entry : Signals::dispositions[signum].loops) {
    Signals* signals = entry.load();
    if (signals == nullptr || kernel.host_of(signals->wakeup().fd()) != host) continue;
    signals->raise(signum);
    is_watched = true;
  }
  return is_watched;
}

}  // namespace spate::sim
