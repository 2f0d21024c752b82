// Bytes: a view of bytes that lie in one piece and belong to somebody else.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate {

using Bytes = std::span<const std::byte>;

// The bytes of a text, without a copy.
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
// The same bytes as text.
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace spate
