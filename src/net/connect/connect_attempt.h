// ConnectAttempt: the state behind a Connecting. Its destructor cancels.
#pragma once

namespace spate {

class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
  // Returns true until the callback is called.
  virtual bool is_pending() const = 0;
};

}  // namespace spate
