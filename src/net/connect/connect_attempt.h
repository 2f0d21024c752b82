// ConnectAttempt: the object behind a Connecting. Its destructor cancels.
#pragma once

namespace spate {

class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
  // Its callback has not been called yet.
  virtual bool is_pending() const = 0;
};

}  // namespace spate
