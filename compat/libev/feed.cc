// Artificial events, and removing pending ones.
//
// Semantics: ev(3) "ev_feed_event", "ev_clear_pending", "ev_invoke".
#include "compat/libev/loop.h"

void ev_feed_event(struct ev_loop* loop, void* watcher, int events) noexcept {
  loop->pending.feed(*static_cast<ev_watcher*>(watcher), events);
}

int ev_clear_pending(struct ev_loop* loop, void* watcher) noexcept {
  return loop->pending.clear(*static_cast<ev_watcher*>(watcher));
}

void ev_invoke(struct ev_loop* loop, void* watcher, int events) {
  auto* called = static_cast<ev_watcher*>(watcher);
  if (called->cb != nullptr) called->cb(loop, called, events);
}
