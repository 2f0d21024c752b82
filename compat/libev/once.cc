// ev_once: a descriptor's watcher and a timer, of which the first to be called ends both.
//
// Semantics: ev(3) "ev_once".
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

// What has happened to the other one as well is told in the same call.
void finish(struct ev_loop* loop, ev_watcher* watcher, int events) {
  auto* once = static_cast<Once*>(watcher->data);
  events |= loop->pending.clear(base(once->io)) | loop->pending.clear(base(once->timer));
  ev_io_stop(loop, &once->io);
  ev_timer_stop(loop, &once->timer);
  const auto callback = once->callback;
  void* argument = once->argument;
  delete once;
  callback(events, argument);
}

}  // namespace

void ev_once(struct ev_loop* loop, int fd, int events, ev_tstamp timeout,
             void (*callback)(int events, void* argument), void* argument) noexcept {
  auto* once = new (std::nothrow) Once{};
  spate::libev::require(once != nullptr, "ev_once: out of memory");
  once->callback = callback;
  once->argument = argument;
  for (ev_watcher* watcher : {&base(once->io), &base(once->timer)}) {
    watcher->data = once;
    watcher->cb = finish;
  }
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
