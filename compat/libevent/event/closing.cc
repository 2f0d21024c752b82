// Semantics: spate/layer/node_loop.h (stop_before_close).
#include "compat/libevent/event/closing.h"

#include "compat/libevent/event/base.h"

void spate::libevent::forget_descriptor(event& ev) {
  const Holding holding(ev.ev_base->lock());
  ev.ev_base->forget_descriptor(ev);
}
