// Only for the single source, where spate_ev.h comes before all others.
#include "compat/libev/signals.h"
#include "compat/libev_source/spate_ev.h"

struct ev_loop* spate_ev_signal_loop(int signum) { return spate::libev::loop_of_signal(signum); }
