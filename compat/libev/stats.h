// Stats: the ev_stat watchers of one loop.
//
// Core detects changes with a node beside each watcher, which needs more room than a watcher has;
// then the path's attributes are read for the program.
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
  ~Stats();  // After core, which has the nodes.

  void start(ev_stat& stat);
  void stop(ev_stat& stat);

 private:
  struct Side;

  static Side& side_of(const ev_stat& stat);
  [[nodiscard]] bool ask_core(Side& side);
  void poll(Side& side);

  struct ev_loop& loop_;
  std::vector<std::unique_ptr<Side>> sides_;  // Indexed by a watcher's `active` - 1.
};

}  // namespace spate::libev
