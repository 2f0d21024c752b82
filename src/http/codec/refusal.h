// Refusal: why a message is not taken.
#pragma once

#include "spate/http/status.h"

namespace spate::http {

struct Refusal {
  Status status = Status::ok;    // What a server answers; a client has received 502 (Bad Gateway).
  const char* reason = nullptr;  // For a log. nullptr: there is no refusal.

  explicit operator bool() const { return reason != nullptr; }
};

inline Refusal bad_request(const char* reason) { return {Status::bad_request, reason}; }

}  // namespace spate::http
