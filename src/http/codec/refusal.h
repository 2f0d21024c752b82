// Refusal: why a message was refused.
#pragma once

#include "spate/http/status.h"

namespace spate::http {

struct Refusal {
  Status status = Status::ok;    // A server's response; 502 (Bad Gateway) in a client.
  const char* reason = nullptr;  // For a log; nullptr: not refused.

  explicit operator bool() const { return reason != nullptr; }
};

inline Refusal bad_request(const char* reason) { return {Status::bad_request, reason}; }

}  // namespace spate::http
