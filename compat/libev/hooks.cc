// ev_prepare, ev_check, ev_idle, ev_fork, ev_cleanup: watchers of the loop's turn itself.
//
// Semantics: ev(3) on each; probed: the order, and that ev_cleanup alone does not keep a loop
// alive.
#include "compat/libev/loop.h"

using spate::libev::base;
using spate::libev::WatcherList;

namespace {

void start_in(struct ev_loop& loop, WatcherList& list, ev_watcher& watcher) {
  if (loop.begin(watcher)) list.add(watcher);
}

void stop_in(struct ev_loop& loop, WatcherList& list, ev_watcher& watcher) {
  if (loop.end(watcher)) list.remove(watcher);
}

WatcherList& idles_of(struct ev_loop& loop, const ev_watcher& idle) {
  return loop.idles[idle.priority - EV_MINPRI];
}

}  // namespace

void ev_prepare_start(struct ev_loop* loop, ev_prepare* prepare) noexcept {
  start_in(*loop, loop->prepares, base(*prepare));
}
void ev_prepare_stop(struct ev_loop* loop, ev_prepare* prepare) noexcept {
  stop_in(*loop, loop->prepares, base(*prepare));
}

void ev_check_start(struct ev_loop* loop, ev_check* check) noexcept {
  start_in(*loop, loop->checks, base(*check));
}
void ev_check_stop(struct ev_loop* loop, ev_check* check) noexcept {
  stop_in(*loop, loop->checks, base(*check));
}

void ev_idle_start(struct ev_loop* loop, ev_idle* idle) noexcept {
  if (!loop->begin(base(*idle))) return;
  idles_of(*loop, base(*idle)).add(base(*idle));
  ++loop->idle_count;
}
void ev_idle_stop(struct ev_loop* loop, ev_idle* idle) noexcept {
  if (!loop->end(base(*idle))) return;
  idles_of(*loop, base(*idle)).remove(base(*idle));
  --loop->idle_count;
}

void ev_fork_start(struct ev_loop* loop, ev_fork* fork) noexcept {
  start_in(*loop, loop->forks, base(*fork));
}
void ev_fork_stop(struct ev_loop* loop, ev_fork* fork) noexcept {
  stop_in(*loop, loop->forks, base(*fork));
}

void ev_cleanup_start(struct ev_loop* loop, ev_cleanup* cleanup) noexcept {
  if (!loop->begin(base(*cleanup))) return;
  loop->cleanups.add(base(*cleanup));
  ev_unref(loop);
}
void ev_cleanup_stop(struct ev_loop* loop, ev_cleanup* cleanup) noexcept {
  if (!loop->end(base(*cleanup))) return;
  ev_ref(loop);
  loop->cleanups.remove(base(*cleanup));
}
