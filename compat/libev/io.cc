// ev_io: the struct is core's node, so starting and stopping is core's own.
//
// Semantics: ev(3) "ev_io", "EV_ERROR", "ev_feed_fd_event". A closed descriptor aborts the original
// as a broken contract. Here it is reported as ev(3) says: the watcher is stopped and called with
// EV_ERROR.
#include "compat/libev/loop.h"

using spate::libev::base;
using spate::libev::clear_and;
using spate::libev::node_of;

namespace {

[[gnu::cold, gnu::noinline]] void refuse(struct ev_loop& loop, ev_io& io) {
  loop.pending.feed(base(io), EV_ERROR | EV_READ | EV_WRITE);
  loop.has_refused = true;
}

}  // namespace

void ev_io_start(struct ev_loop* loop, ev_io* io) noexcept {
  if (io->active != 0) return;
  spate::libev::clamp_priority(base(*io));
  if (!loop->core->start(node_of(*io))) refuse(*loop, *io);
}

void ev_io_stop(struct ev_loop* loop, ev_io* io) noexcept {
  if (io->pending != 0) [[unlikely]]
    return clear_and(ev_io_stop, *loop, *io);
  if (io->active != 0) loop->core->stop(node_of(*io));
}

// A probe node at the head of the descriptor's list in core gives access to the other watchers.
void ev_feed_fd_event(struct ev_loop* loop, int fd, int events) noexcept {
  spate::FdNode probe{};
  probe.head.priority = spate::kDirect;
  probe.head.callback = [](void*, spate::Node&, spate::Events) {};
  probe.fd = fd;
  if (!loop->core->start(probe)) return;
  for (spate::FdNode* node = probe.next; node != nullptr; node = node->next) {
    const int wanted = static_cast<int>(node->events) & events;
    if (wanted != 0 && node->head.priority != spate::kDirect)
      loop->pending.feed(spate::libev::watcher_of(*node), wanted);
  }
  loop->core->stop(probe);
}
