// SHA-1 (FIPS 180-4), of which the handshake of WebSocket is made: a sign that the other side has
// understood, and no security.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace spate::http {

std::array<char, 20> sha1(std::string_view text);

}  // namespace spate::http
