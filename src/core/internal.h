// Internal: an internal event of the loop that is queued among those of users.
#pragma once

#include "spate/layer/node.h"

namespace spate {

class LoopCore;

class Internal {
 public:
  virtual void on_event(Events events) = 0;

 protected:
  ~Internal() = default;
};

}  // namespace spate
