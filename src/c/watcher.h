// Functions for a watcher of unknown kind.
#pragma once

#include "spate.h"
#include "spate/layer/node.h"

namespace spate::c {

// Returns whether a node is a watcher of C.
bool is_watcher(const Node& node);
// Makes for_each_active() leave out watchers that do not keep the loop alive.
void name_watchers();
// After a batch, for an inactive watcher: what enter() does after a callback.
void settle(spate_watcher& watcher);

}  // namespace spate::c
