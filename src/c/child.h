// Reference counting of children at a fork, where the loop stops them.
#pragma once

#include "core/loop_core.h"

namespace spate::c {

// count_children() counts all of them, since stopping them will discount all; discount_children()
// then restores the count without those that do not keep the loop alive.
void count_children(LoopCore& core);
void discount_children(LoopCore& core);

}  // namespace spate::c
