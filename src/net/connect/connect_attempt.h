// ConnectAttempt: what a Connecting stands for. Its destructor cancels.
#pragma once

namespace spate {

class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
  // Whether its callback has still to be called.
  virtual bool is_pending() const = 0;
};

}  // namespace spate
