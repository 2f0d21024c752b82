// Framing: how the body behind a head is delimited, and what becomes of the connection (RFC 9112
// §6, §9). Whatever two readers could take for two different messages is refused.
#pragma once

#include <cstdint>

#include "http/codec/head.h"
#include "http/codec/refusal.h"

namespace spate::http {

enum class BodyKind : std::uint8_t {
  none,
  sized,      // By Content-Length; `size` bytes, at least one.
  chunked,    // See chunked.h.
  until_end,  // Answers only: of the connection.
};

struct Framing {
  BodyKind body = BodyKind::none;
  std::uint64_t size = 0;
  bool keeps_alive = false;       // The connection may carry another message.
  bool expects_continue = false;  // The client waits for 100 (Continue) before it sends the body.
  bool asks_upgrade = false;      // To what Upgrade names.
  bool becomes_tunnel = false;    // Of an answer: behind the head begins another protocol.
};

// Sets `framing`, or says what to answer before the connection is closed.
Refusal frame_request(const RequestView& request, Framing& framing);

// `asked` is the method of the request that is answered. All refusals are 502.
Refusal frame_response(const ResponseView& response, Method asked, Framing& framing);

}  // namespace spate::http
