// Semantics: how many are called before the loop looks for others: probes.
#include "compat/libevent/event/deferred.h"

#include "compat/libevent/event/base.h"

void spate::libevent::activate_deferred(event& ev) {
  event_base& base = *ev.ev_base;
  const Holding holding(base.lock());
  base.activate_deferred(ev);
  base.notify();
}
