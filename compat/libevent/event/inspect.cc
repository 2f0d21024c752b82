// Iterating over all events of a base: to list, to dump, to activate some.
//
// Semantics: event2/event.h (event_base_foreach_event, event_base_dump_events,
// event_base_active_by_fd, event_base_active_by_signal); probed: the order, the form of the lines,
// and that EV_TIMEOUT excludes the other events.
#include <algorithm>
#include <cstdio>

#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using spate::FdNode;
using spate::TimerNode;
using namespace spate::libevent;

namespace {

struct List {
  // Returns a list with room for `count` events; null without memory.
  explicit List(int max)
      : events(static_cast<event**>(allocate(static_cast<std::size_t>(max) * sizeof(event*)))) {}
  void append(event& ev) { events[count++] = &ev; }

  event** events;
  std::size_t count = 0;
};

// Calls NodeLoop::for_each() with a callable.
template <class N, class F>
void for_each(const spate::Loop& loop, F show) {
  bool (*call)(void*, N&) = [](void* context, N& node) {
    (*static_cast<F*>(context))(event_of(node));
    return true;
  };
  loop.for_each(call, &show);
}

bool expires_before(event* a, event* b) {
  return timer_node(*a).deadline < timer_node(*b).deadline;
}

}  // namespace

event** event_base::list_events(std::size_t& count) const {
  count = 0;
  List list(added_.now);
  if (list.events == nullptr) return nullptr;
  for_each<FdNode>(*loop_, [&list](event& ev) { list.append(ev); });
  for (int number = 0; number < Signals::kSignals; ++number) {
    for (event* ev = signals_.first(number); ev != nullptr; ev = links(*ev).next) list.append(*ev);
  }
  for (event* ev = refused_; ev != nullptr; ev = links(*ev).next) list.append(*ev);
  for (event* ev = unwatched_; ev != nullptr; ev = links(*ev).next) {
    if (ev->ev_fd >= 0) list.append(*ev);
  }
  const std::size_t first_timer = list.count;
  for_each<TimerNode>(*loop_, [&list](event& ev) {
    if (!has_flag(ev, EVLIST_INSERTED)) list.append(ev);
  });
  std::sort(list.events + first_timer, list.events + list.count, expires_before);
  for (int priority = 0; priority < active_.priorities(); ++priority) {
    for (event_callback* callback = active_.first(priority); callback != nullptr;
         callback = active_.after(*callback)) {
      event& ev = event_of(*callback);
      if (!has_flag(ev, EVLIST_INSERTED | EVLIST_TIMEOUT | EVLIST_INTERNAL)) list.append(ev);
    }
  }
  count = list.count;
  return list.events;
}

void event_base::activate_by_fd(int fd, short what) {
  if ((what & EV_TIMEOUT) != 0) return activate_timeouts(fd);
  what &= EV_READ | EV_WRITE | EV_CLOSED | EV_ET;
  for_each<FdNode>(*loop_, [this, fd, what](event& ev) {
    const auto matching = static_cast<short>(ev.ev_events & what);
    if (ev.ev_fd == fd && (matching & ~EV_ET) != 0) activate(ev, matching, 1);
  });
}

// The first to expire is called first.
void event_base::activate_timeouts(int fd) {
  List list(added_.now);
  if (list.events == nullptr) return;
  for_each<TimerNode>(*loop_, [&list, fd](event& ev) {
    if (ev.ev_fd == fd) list.append(ev);
  });
  std::sort(list.events, list.events + list.count, expires_before);
  for (std::size_t i = 0; i < list.count; ++i) activate(*list.events[i], EV_TIMEOUT, 1);
  release(list.events);
}

void event_base::activate_by_signal(int number) {
  for (event* ev = signals_.first(number); ev != nullptr; ev = links(*ev).next) {
    activate(*ev, EV_SIGNAL, 1);
  }
}

// ---- the exported functions

int event_base_foreach_event(event_base* base, event_base_foreach_event_cb callback,
                             void* argument) {
  if (base == nullptr || callback == nullptr) return -1;
  const Holding holding(base->lock());
  std::size_t count;
  event** events = base->list_events(count);
  int result = 0;
  for (std::size_t i = 0; i < count && result == 0; ++i) {
    result = callback(base, events[i], argument);
  }
  release(events);
  return result;
}

namespace {

void dump_events(std::FILE* output, event& ev, int what) {
  if ((what & EV_READ) != 0) std::fputs(" Read", output);
  if ((what & EV_WRITE) != 0) std::fputs(" Write", output);
  if ((what & EV_CLOSED) != 0) std::fputs(" EOF", output);
  if ((what & EV_SIGNAL) != 0) std::fputs(" Signal", output);
  if (has_flag(ev, EVLIST_INTERNAL)) std::fputs(" Internal", output);
}

const char* kind_of(const event& ev) { return (ev.ev_events & EV_SIGNAL) != 0 ? "sig" : "fd "; }

void dump_added(std::FILE* output, event_base& base, event& ev) {
  if (!has_flag(ev, EVLIST_INSERTED | EVLIST_TIMEOUT)) return;
  std::fprintf(output, "  %p [%s %ld]", static_cast<void*>(&ev), kind_of(ev), long{ev.ev_fd});
  dump_events(output, ev, ev.ev_events);
  if ((ev.ev_events & EV_PERSIST) != 0) std::fputs(" Persist", output);
  if ((ev.ev_events & EV_ET) != 0) std::fputs(" ET", output);
  if (has_flag(ev, EVLIST_TIMEOUT)) {
    const timeval expiry = timeval_of(timer_node(ev).deadline + base.to_wall_clock());
    std::fprintf(output, " Timeout=%ld.%06ld", long{expiry.tv_sec}, long{expiry.tv_usec});
  }
  std::fputc('\n', output);
}

void dump_active(std::FILE* output, event& ev) {
  if (!has_flag(ev, EVLIST_ACTIVE)) return;
  std::fprintf(output, "  %p [%s %ld, priority=%d]", static_cast<void*>(&ev), kind_of(ev),
               long{ev.ev_fd}, int{ev.ev_evcallback.evcb_pri});
  dump_events(output, ev, ev.ev_res);
  if ((ev.ev_res & EV_TIMEOUT) != 0) std::fputs(" Timeout", output);
  std::fputs(" active\n", output);
}

}  // namespace

void event_base_dump_events(event_base* base, std::FILE* output) {
  const Holding holding(base->lock());
  std::size_t count;
  event** events = base->list_events(count);
  std::fputs("Inserted events:\n", output);
  for (std::size_t i = 0; i < count; ++i) dump_added(output, *base, *events[i]);
  std::fputs("Active events:\n", output);
  for (std::size_t i = 0; i < count; ++i) dump_active(output, *events[i]);
  release(events);
}

void event_base_active_by_fd(event_base* base, evutil_socket_t fd, short events) {
  const Holding holding(base->lock());
  base->activate_by_fd(fd, events);
  base->notify();
}

void event_base_active_by_signal(event_base* base, int number) {
  const Holding holding(base->lock());
  base->activate_by_signal(number);
  base->notify();
}
