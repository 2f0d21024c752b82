// What the two ends of a WebSocket say to each other before its first frame (RFC 6455 §4).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "spate/http/fields.h"

namespace spate::http {

inline constexpr std::string_view kWebSocket = "websocket";
inline constexpr std::string_view kWebSocketVersion = "13";

// Of 16 random bytes, which the server shows that it has read.
std::string websocket_key(std::array<char, 16> bytes);
bool is_websocket_key(std::string_view key);
std::string websocket_accept(std::string_view key);

// permessage-deflate in which each message begins anew, either way: what a client asks for, what a
// server answers, and whether that is among what a client has asked for.
inline constexpr std::string_view kDeflate =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
bool offers_deflate(const FieldsView& fields);

enum class AgreedExtensions { none, deflate, bad };
// What a server has answered to kDeflate, or to nothing.
AgreedExtensions agreed_extensions(const FieldsView& fields, bool has_offered_deflate);

// Whether the page that asks is of the same host as what it asks for: Origin names it, or there is
// none, as programs other than browsers send.
bool is_same_origin(std::string_view origin, std::string_view host);

}  // namespace spate::http
