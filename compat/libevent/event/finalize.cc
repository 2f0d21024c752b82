// Semantics: event2/event.h (event_finalize, event_free_finalize).
#include "compat/libevent/debug_mode.h"
#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"

namespace {

using namespace spate::libevent;

int finalize(event* ev, event_finalize_callback_fn callback, Closure closure) {
  if (ev->ev_base == nullptr) {
    warnx("event_finalize: the event has no event base");
    return -1;
  }
  if (debug::is_on) debug::check_set_up(ev, "event_finalize");
  const Holding holding(ev->ev_base->lock());
  ev->ev_base->finalize(*ev, callback, closure);
  return 0;
}

}  // namespace

int event_finalize(unsigned, event* ev, event_finalize_callback_fn callback) {
  return finalize(ev, callback, Closure::finalize);
}

int event_free_finalize(unsigned, event* ev, event_finalize_callback_fn callback) {
  return finalize(ev, callback, Closure::finalize_and_free);
}
