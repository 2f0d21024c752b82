// The functions without a base: they use the last one that event_init() made.
//
// Semantics: event2/event_compat.h.
#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"

using namespace spate::libevent;

event_base* event_init() {
  event_base* base = event_base_new_with_config(nullptr);
  if (base == nullptr) fatal(1, "event_init: no event base can be made");
  current_base = base;
  return base;
}

void event_set(event* ev, evutil_socket_t fd, short events, event_callback_fn callback,
               void* argument) {
  if (event_assign(ev, current_base, fd, events, callback, argument) != 0) {
    fatal(kAbort, "event_set: the event cannot be set up");
  }
}

int event_dispatch() { return event_loop(0); }
int event_loop(int flags) { return event_base_loop(current_base, flags); }
int event_loopexit(const timeval* after) { return event_base_loopexit(current_base, after); }
int event_loopbreak() { return event_base_loopbreak(current_base); }
int event_priority_init(int priorities) {
  return event_base_priority_init(current_base, priorities);
}
const char* event_get_method() { return event_base_get_method(current_base); }

int event_once(evutil_socket_t fd, short events, event_callback_fn callback, void* argument,
               const timeval* timeout) {
  return event_base_once(current_base, fd, events, callback, argument, timeout);
}
