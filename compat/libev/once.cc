// ev_once: a descriptor's watcher and a timer; the first to be called stops both.
//
// Semantics: ev(3) "ev_once".
#include <cstddef>
#include <new>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"

using spate::libev::base;

namespace {

struct Once {
  ev_io io;
  ev_timer timer;
  void (*callback)(int events, void* argument);
  void* argument;
};

// An event of the other watcher is reported in the same call.
void finish(struct ev_loop* loop, Once* once, int events) {
  events |= loop->pending.clear(base(once->io)) | loop->pending.clear(base(once->timer));
  ev_io_stop(loop, &once->io);
  ev_timer_stop(loop, &once->timer);
  const auto callback = once->callback;
  void* argument = once->argument;
  delete once;
  callback(events, argument);
}

void on_io(struct ev_loop* loop, ev_io* io, int events) {
  finish(loop, reinterpret_cast<Once*>(io), events);
}

void on_timer(struct ev_loop* loop, ev_timer* timer, int events) {
  void* const once = reinterpret_cast<char*>(timer) - offsetof(Once, timer);
  finish(loop, static_cast<Once*>(once), events);
}

}  // namespace

void ev_once(struct ev_loop* loop, int fd, int events, ev_tstamp timeout,
             void (*callback)(int events, void* argument), void* argument) noexcept {
  auto* once = new (std::nothrow) Once{};
  spate::libev::require(once != nullptr, "ev_once: out of memory");
  once->callback = callback;
  once->argument = argument;
  once->io.cb = on_io;
  once->timer.cb = on_timer;
  if (fd >= 0) {
    once->io.fd = fd;
    once->io.events = events | EV__IOFDSET;
    ev_io_start(loop, &once->io);
  }
  if (timeout >= 0) {
    spate::libev::set_seconds_at(once->timer, timeout);
    ev_timer_start(loop, &once->timer);
  }
}
