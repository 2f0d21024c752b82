// Probed: how many are called before the loop polls for others.
#include "compat/libevent/event/deferred.h"

#include "compat/libevent/event/base.h"

bool spate::libevent::activate_deferred(event& ev) {
  event_base& base = *ev.ev_base;
  const Holding holding(base.lock());
  const bool is_new = base.activate_deferred(ev);
  base.notify();
  return is_new;
}

void spate::libevent::finalize_deferred(event& ev, event_finalize_callback_fn callback) {
  event_base& base = *ev.ev_base;
  const Holding holding(base.lock());
  base.finalize_deferred(ev, callback);
}
