// Extension: what a layer above keeps for each loop. It lives until the loop is destroyed, and goes
// while the loop still works.
#pragma once

#include <memory>

#include "spate/loop.h"

namespace spate {

class Extension {
 public:
  virtual ~Extension() = default;
  // A callback is about to run the loop: what waits for that callback to return has to go first.
  virtual void on_nested_run() {}
};

// The loop's extension; empty until somebody puts one there. There is one layer above: net.
std::unique_ptr<Extension>& extension_of(Loop& loop);

// Does to a loop that will not run again what destroying it does, but leaves it where it is: other
// threads may still post() to it and wake it. Calls nothing but cleanup hooks.
void end_loop(Loop& loop);

}  // namespace spate
