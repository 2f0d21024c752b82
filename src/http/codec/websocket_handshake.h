// The fields of the WebSocket handshake (RFC 6455 §4).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "spate/http/fields.h"

namespace spate::http {

inline constexpr std::string_view kWebSocket = "websocket";
inline constexpr std::string_view kWebSocketVersion = "13";

// Makes a key of 16 random bytes; websocket_accept() is the server's proof that it has read the
// key.
std::string websocket_key(std::array<char, 16> bytes);
bool is_websocket_key(std::string_view key);
std::string websocket_accept(std::string_view key);

// permessage-deflate without context takeover in both directions: the client's offer.
inline constexpr std::string_view kDeflate =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

// A client's offer that a server accepts.
struct DeflateAgreement {
  int window = 0;             // The server's window, 9 to 15 bits; 0 if no offer was accepted.
  bool names_window = false;  // The client sent one, so the response must (RFC 7692 §7.1.2.1).

  explicit operator bool() const { return window != 0; }
  // Returns the value of Sec-WebSocket-Extensions.
  std::string response() const;
};
DeflateAgreement agree_to_deflate(const FieldsView& fields);

enum class AgreedExtensions { none, deflate, bad };
// Parses a server's response to kDeflate, or to no offer.
AgreedExtensions agreed_extensions(const FieldsView& fields, bool has_offered_deflate);

// Returns whether the requesting page is of the requested host. Programs other than browsers send
// no Origin, which is accepted.
bool is_same_origin(std::string_view origin, std::string_view host);

}  // namespace spate::http
