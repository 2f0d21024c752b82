// Http2Priority: the priority of a response (RFC 9218 §4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spate::http {

struct Http2Priority {
  static constexpr std::size_t kUrgencies = 8;

  std::uint8_t urgency = 3;
  bool is_incremental = false;

  bool operator==(const Http2Priority&) const = default;
};

// Parses the value of a Priority field: a dictionary of structured fields (RFC 8941 §3.2). Returns
// false if it is malformed, with `priority` unchanged.
bool parse_priority(std::string_view text, Http2Priority& priority);

}  // namespace spate::http
