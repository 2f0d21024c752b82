// Semantics: event2/event.h (event_base_once); probed: the accepted events, and that no timeout
// means an expired one.
#include "compat/libevent/event/once.h"

#include "compat/libevent/debug_mode.h"
#include "compat/libevent/event/base.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

void unlink(OnceEvent& once) {
  *once.previous = once.next;
  if (once.next != nullptr) once.next->previous = once.previous;
}

void free_once(OnceEvent* once) {
  if (debug::is_on) debug::note_torn_down(&once->ev);
  release(once);
}

// The base owns it until its callback has returned: the callback may query the running event, and
// may leave by longjmp().
void on_once(evutil_socket_t fd, short what, void* argument) {
  auto* once = static_cast<OnceEvent*>(argument);
  once->callback(fd, what, once->argument);
  {
    const Holding holding(once->ev.ev_base->lock());
    unlink(*once);
  }
  free_once(once);
}

// Returns the kinds of events that are compatible with it, or 0.
short kinds_in(short events) {
  constexpr short kDescriptor = EV_READ | EV_WRITE | EV_CLOSED;
  if ((events & (EV_SIGNAL | EV_PERSIST)) != 0) return 0;
  if ((events & kDescriptor) != 0) return static_cast<short>(events & kDescriptor);
  return static_cast<short>(events & EV_TIMEOUT);
}

bool is_over(const timeval* timeout) {
  return timeout == nullptr || (timeout->tv_sec == 0 && timeout->tv_usec == 0);
}

}  // namespace

void spate::libevent::release_once_events(OnceEvent* first) {
  while (first != nullptr) {
    OnceEvent* next = first->next;
    free_once(first);
    first = next;
  }
}

int event_base_once(event_base* base, evutil_socket_t fd, short events, event_callback_fn callback,
                    void* argument, const timeval* timeout) {
  const short kinds = kinds_in(events);
  if (base == nullptr || kinds == 0) return -1;
  auto* once = static_cast<OnceEvent*>(allocate(sizeof(OnceEvent)));
  if (once == nullptr) return -1;
  once->callback = callback;
  once->argument = argument;
  const bool is_timer = kinds == EV_TIMEOUT;
  event_assign(&once->ev, base, is_timer ? -1 : fd, is_timer ? short{0} : kinds, on_once, once);
  const Holding holding(base->lock());
  if (is_timer && is_over(timeout)) {
    base->activate(once->ev, EV_TIMEOUT, 1);
    base->notify();
  } else if (base->add(once->ev, timeout) != 0) {
    free_once(once);
    return -1;
  }
  OnceEvent*& first = base->once_events();
  once->next = first;
  once->previous = &first;
  if (first != nullptr) first->previous = &once->next;
  first = once;
  return 0;
}
