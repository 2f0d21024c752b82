// SHA-1 (FIPS 180-4) for the WebSocket handshake, where it shows that the server supports the
// protocol and provides no security.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace spate::http {

std::array<char, 20> sha1(std::string_view text);

}  // namespace spate::http
