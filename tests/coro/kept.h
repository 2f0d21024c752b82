// Empties the memory that the thread keeps for frames. Earlier tests have filled it, which would
// hide failures of the next one.
#pragma once

#include "base/memory.h"
#include "spate/kept_memory.h"

namespace spate::testing {

// Starts as on a new thread; frames of this test are kept from now on.
inline void begin_with_nothing_kept() {
  if (kHasAddressSanitizer) return;
  kept_memory.close();
  kept_memory.open();
}

}  // namespace spate::testing
