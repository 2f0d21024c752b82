// What is done to a watcher whose kind is not known.
#pragma once

#include "spate.h"
#include "spate/node.h"

namespace spate::c {

// Whether a node is a watcher of C's.
bool is_watcher(const Node& node);
// Behind a batch, of one that is inactive: what enter() does behind a callback.
void settle(spate_watcher& watcher);

}  // namespace spate::c
