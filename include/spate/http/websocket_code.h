// The kinds of WebSocket messages, and the close codes (RFC 6455 §7.4).
// Threads: any; the values are constants or plain copies.
#pragma once

#include <cstdint>

namespace spate::http {

enum class MessageKind : std::uint8_t { text, binary };

// Whether messages are reported whole, or in parts as they arrive.
enum class MessageView : std::uint8_t { whole, parts };

// Any number from 3000 to 4999 is valid as well: up to 3999 registered, above for private use.
enum class CloseCode : std::uint16_t {
  normal = 1000,
  going_away = 1001,  // A server that shuts down, or a page that was left.
  protocol_error = 1002,
  unsupported_data = 1003,
  no_code = 1005,   // The close frame had no code. Never sent.
  abnormal = 1006,  // The connection was lost without a close frame. Never sent.
  invalid_text = 1007,
  policy_violation = 1008,
  message_too_big = 1009,
  missing_extension = 1010,
  internal_error = 1011,
  service_restart = 1012,
  try_again_later = 1013,
  bad_gateway = 1014,
};

// Returns whether a close frame may carry the code.
constexpr bool may_be_sent(CloseCode code) {
  const auto number = static_cast<std::uint16_t>(code);
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) ||
         (number >= 3000 && number <= 4999);
}

}  // namespace spate::http
