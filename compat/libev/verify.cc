// ev_verify: checks the invariants of the data that the library keeps in the program's structs.
//
// Semantics: ev(3) "ev_verify".
#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"

using spate::libev::require;

bool spate::libev::WatcherList::is_consistent() const {
  for (std::size_t i = 0; i < watchers_.size(); ++i) {
    const ev_watcher& watcher = *watchers_[i];
    if (watcher.active != static_cast<int>(i) + 1) return false;
    if (watcher.priority < EV_MINPRI || watcher.priority > EV_MAXPRI) return false;
  }
  return true;
}

void ev_verify(struct ev_loop* loop) noexcept {
  require(loop->pending.is_consistent(), "ev_verify: a pending watcher is not where it was queued");
  require(loop->periodics.is_consistent(), "ev_verify: the periodics are out of order");
  for (const spate::libev::WatcherList* list :
       {&loop->prepares, &loop->checks, &loop->forks, &loop->cleanups, &loop->asyncs}) {
    require(list->is_consistent(), "ev_verify: a watcher is not where it was started");
  }
  std::size_t idles = 0;
  for (const spate::libev::WatcherList& list : loop->idles) {
    require(list.is_consistent(), "ev_verify: an idle watcher is not where it was started");
    idles += list.all().size();
  }
  require(idles == static_cast<std::size_t>(loop->idle_count), "ev_verify: idle watchers are lost");
}
