// ConnectAttempt: what a Connecting stands for. Its destructor cancels.
#pragma once

namespace spate {

class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
};

}  // namespace spate
