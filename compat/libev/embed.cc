// ev_embed: one loop inside another, through the descriptor that core provides for this.
//
// Semantics: ev(3) "ev_embed".
#include <cstddef>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"

using spate::libev::base;

namespace {

ev_embed& owner_of(void* member, std::size_t offset) {
  return *reinterpret_cast<ev_embed*>(static_cast<char*>(member) - offset);
}

void tell(struct ev_loop* loop, ev_embed& embed) {
  if (embed.cb != nullptr) {
    ev_feed_event(loop, &embed, EV_EMBED);
  } else {
    ev_embed_sweep(loop, &embed);
  }
}

void on_readable(struct ev_loop* loop, ev_io* io, int) {
  tell(loop, owner_of(io, offsetof(ev_embed, io)));
}

// Updates the inner loop's registrations in the kernel. Its descriptor does not show work that is
// already pending: then the outer loop must not sleep either.
void on_prepare(struct ev_loop* loop, ev_prepare* prepare, int) {
  ev_embed& embed = owner_of(prepare, offsetof(ev_embed, prepare));
  if (embed.other->core->prepare_to_wait().count() > 0 && !embed.other->has_work()) return;
  tell(loop, embed);
  loop->raise(loop->async_raised);
}

// The inner loop's descriptor has changed.
void on_fork(struct ev_loop* loop, ev_fork* fork, int) {
  ev_embed& embed = owner_of(fork, offsetof(ev_embed, fork));
  ev_embed_stop(loop, &embed);
  ev_loop_fork(embed.other);
  ev_run(embed.other, EVRUN_NOWAIT);
  ev_embed_start(loop, &embed);
}

}  // namespace

void ev_embed_start(struct ev_loop* loop, ev_embed* embed) noexcept {
  if (embed->active != 0) return;
  const auto fd = embed->other->core->poll_fd();
  spate::libev::require(fd.has_value(), "ev_embed_start: the inner loop is not embeddable");
  loop->begin(base(*embed));
  embed->active = 1;
  embed->io = {};
  embed->io.cb = on_readable;
  embed->io.priority = embed->priority;
  embed->io.fd = *fd;
  embed->io.events = EV_READ | EV__IOFDSET;
  ev_io_start(loop, &embed->io);
  embed->prepare = {};
  embed->prepare.cb = on_prepare;
  embed->prepare.priority = EV_MINPRI;
  ev_prepare_start(loop, &embed->prepare);
  embed->fork = {};
  embed->fork.cb = on_fork;
  ev_fork_start(loop, &embed->fork);
}

void ev_embed_stop(struct ev_loop* loop, ev_embed* embed) noexcept {
  if (!loop->end(base(*embed))) return;
  embed->active = 0;
  ev_io_stop(loop, &embed->io);
  ev_prepare_stop(loop, &embed->prepare);
  ev_fork_stop(loop, &embed->fork);
}

void ev_embed_sweep(struct ev_loop*, ev_embed* embed) noexcept {
  ev_run(embed->other, EVRUN_NOWAIT);
}
