// Framing: how the body after a header section is delimited, and whether the connection persists
// (RFC 9112 §6, §9). Any message that two parsers could split differently is refused (request
// smuggling).
#pragma once

#include <cstdint>

#include "http/codec/head.h"
#include "http/codec/refusal.h"

namespace spate::http {

enum class BodyKind : std::uint8_t {
  none,
  sized,      // Content-Length: `size` bytes, at least one.
  chunked,    // See chunked.h.
  until_end,  // Responses only: until the connection closes.
};

struct Framing {
  BodyKind body = BodyKind::none;
  std::uint64_t size = 0;
  bool keeps_alive = false;       // The connection may carry another message.
  bool expects_continue = false;  // The client waits for 100 (Continue) before it sends the body.
  bool asks_upgrade = false;      // To the protocol in Upgrade.
  bool becomes_tunnel = false;    // Responses: another protocol follows the header section.
};

// Sets `framing`, or returns the error with which the server closes the connection.
Refusal frame_request(const RequestView& request, Framing& framing);

// As above; `method` is the method of the request. The status of all errors is 502.
Refusal frame_response(const ResponseView& response, Method method, Framing& framing);

}  // namespace spate::http
