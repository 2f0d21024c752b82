// Bytes: a view of contiguous bytes.
// Threads: any, one at a time for each object.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate {

using Bytes = std::span<const std::byte>;

// Convert a text to bytes, and back. Neither copies.
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace spate
