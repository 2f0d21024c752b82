// ev_async: a flag in the watcher, one in the loop, and a wake-up if the loop sleeps.
//
// Semantics: ev(3) "ev_async". `sent` belongs to other threads while it is set.
#include "compat/libev/loop.h"

using spate::libev::base;

void ev_async_start(struct ev_loop* loop, ev_async* async) noexcept {
  if (!loop->begin(base(*async))) return;
  __atomic_store_n(&async->sent, 0, __ATOMIC_SEQ_CST);
  loop->asyncs.add(base(*async));
  loop->gets_messages = true;
}

void ev_async_stop(struct ev_loop* loop, ev_async* async) noexcept {
  if (loop->end(base(*async))) loop->asyncs.remove(base(*async));
}

void ev_async_send(struct ev_loop* loop, ev_async* async) noexcept {
  __atomic_store_n(&async->sent, 1, __ATOMIC_SEQ_CST);
  loop->raise(loop->async_raised);
}

// Feeds the last one first, so that the one started first is called first.
void ev_loop::feed_asyncs() {
  const std::vector<ev_watcher*>& all = asyncs.all();
  for (std::size_t i = all.size(); i > 0; --i) {
    auto& async = reinterpret_cast<ev_async&>(*all[i - 1]);
    if (__atomic_exchange_n(&async.sent, 0, __ATOMIC_SEQ_CST) != 0)
      pending.feed(base(async), EV_ASYNC);
  }
}
