// Internal: something of the loop's own whose event waits its turn among the users'.
#pragma once

#include "spate/node.h"

namespace spate {

class LoopCore;

class Internal {
 public:
  virtual void on_event(Events events) = 0;

 protected:
  ~Internal() = default;
};

}  // namespace spate
