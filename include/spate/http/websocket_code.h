// What a WebSocket's messages are, and the codes with which connections are closed (RFC 6455 §7.4).
#pragma once

#include <cstdint>

namespace spate::http {

enum class MessageKind : std::uint8_t { text, binary };

// Whether messages are shown when they are whole, or in parts, as they come.
enum class MessageView : std::uint8_t { whole, parts };

// Any number from 3000 to 4999 may be one as well: up to 3999 registered, above for the two ends to
// agree on.
enum class CloseCode : std::uint16_t {
  normal = 1000,
  going_away = 1001,  // A server that shuts down, a page that is left.
  protocol_error = 1002,
  unsupported_data = 1003,
  no_code = 1005,   // The peer has given none. Never sent.
  abnormal = 1006,  // The connection was lost before the peer has said anything. Never sent.
  invalid_text = 1007,
  policy_violation = 1008,
  message_too_big = 1009,
  missing_extension = 1010,
  internal_error = 1011,
  service_restart = 1012,
  try_again_later = 1013,
  bad_gateway = 1014,
};

// Whether a close frame may have it.
constexpr bool may_be_sent(CloseCode code) {
  const auto number = static_cast<std::uint16_t>(code);
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) ||
         (number >= 3000 && number <= 4999);
}

}  // namespace spate::http
