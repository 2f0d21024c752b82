// Stats: the ev_stat watchers of one loop.
//
// Core finds out that something has changed, with a node beside each watcher, since it keeps more
// than a watcher has room for; what has changed is then looked up for the program.
//
// Semantics: ev(3) "ev_stat", "EVFLAG_NOINOTIFY".
#pragma once

#include <memory>
#include <vector>

#include "compat/libev/ev_api.h"

namespace spate::libev {

class Stats {
 public:
  explicit Stats(struct ev_loop& loop);
  ~Stats();  // After core, which holds the nodes.

  void start(ev_stat& stat);
  void stop(ev_stat& stat);

 private:
  struct Side;

  static Side& side_of(const ev_stat& stat);
  bool ask_core(Side& side);
  void poll(Side& side);

  struct ev_loop& loop_;
  std::vector<std::unique_ptr<Side>> sides_;  // At a watcher's `active` - 1.
};

}  // namespace spate::libev
