// StreamUse: the purpose of a Stream, shown by for_each_active(). It takes no memory: a Stream
// stores it by the choice among equal event callbacks.
//
// Programs do not need this header. Libraries that run a protocol on a Stream use it. Threads: the
// loop's thread only.
#pragma once

#include <cstdint>

#include "spate/export.h"
#include "spate/net/stream.h"

namespace spate {

enum class StreamUse : std::uint8_t {
  general,
  http_request,      // A connection of an http::Server.
  http_client,       // A connection of an http::Client,
  http_client_idle,  // which does not keep the loop alive: its owner called Loop::unref().
  websocket,
};
inline constexpr int kStreamUses = 5;

SPATE_EXPORT void set_use(const Stream& stream, StreamUse use);

}  // namespace spate
