// Children in a fork, whose loop stops them.
#pragma once

#include "core/loop_core.h"

namespace spate::c {

// The loop counts all of them, as it will count all of them out; and, as before, only those that
// keep it alive.
void count_children(LoopCore& core);
void discount_children(LoopCore& core);

}  // namespace spate::c
