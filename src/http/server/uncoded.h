// Uncoded: the part of a compressed response that is not compressed yet: files, and bytes that
// follow them.
#pragma once

#include "http/server/outbox.h"
#include "spate/http/fields.h"
#include "spate/net/stream.h"

namespace spate::http {

struct Uncoded {
  static constexpr QueueLimits kLimits{};  // As a Stream has them.

  void on_append() {
    is_full |= out.size() > kLimits.high;
    owes_drained |= is_full;
  }
  void on_take() { is_full &= out.size() > kLimits.low; }

  Outbox::Total total;
  Outbox out{total};
  Fields trailers;  // Sent after it.
  bool is_full = false;
  bool owes_drained = false;  // The handler waits for on_drained().
};

}  // namespace spate::http
