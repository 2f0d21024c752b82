// What the thread keeps of memory: full of what earlier tests needed, of which the next one may
// need nothing.
#pragma once

#include "base/memory.h"
#include "spate/kept_memory.h"

namespace spate::testing {

// As of a thread that has just begun; frames of this test are kept from now on.
inline void begin_with_nothing_kept() {
  if (kHasAddressSanitizer) return;
  kept_memory.close();
  kept_memory.open();
}

}  // namespace spate::testing
