#include "http/codec/host.h"

#include "http/codec/uri_chars.h"

namespace spate::http {

namespace {

// 0 ... 255 without leading zeros.
bool is_octet(std::string_view text) {
  if (text.empty() || text.size() > 3 || !is_all_of(text, kUriDigit)) return false;
  if (text.size() > 1 && text.front() == '0') return false;
  int value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return value <= 255;
}

// Returns the number of 16-bit groups in one half of an IPv6 address, before or after "::"; -1 if
// invalid. An IPv4 address may be at the end.
enum class AtEnd : std::uint8_t { no, yes };
int count_groups(std::string_view half, AtEnd at_end) {
  int groups = 0;
  while (!half.empty()) {
    const std::size_t colon = half.find(':');
    const std::string_view group = half.substr(0, colon);
    const bool is_last = colon == std::string_view::npos;
    if (is_last && at_end == AtEnd::yes && is_ipv4(group)) return groups + 2;
    if (group.empty() || group.size() > 4 || !is_all_of(group, kUriHex)) return -1;
    ++groups;
    if (is_last) break;
    half.remove_prefix(colon + 1);
    if (half.empty()) return -1;
  }
  return groups;
}

// Returns the size of the host at the front; npos if invalid.
std::size_t size_of_host(std::string_view text) {
  if (!text.starts_with('[')) {
    const std::size_t size = escaped_span_of(text, kUnreserved | kSubDelims);
    return size == text.size() || text[size] == ':' ? size : std::string_view::npos;
  }
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos || !is_ipv6(text.substr(1, end - 1)))
    return std::string_view::npos;
  return end + 1;
}

}  // namespace

bool is_ipv4(std::string_view text) {
  for (int octets = 1;; ++octets) {
    const std::size_t dot = text.find('.');
    if (!is_octet(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return octets == 4;
    text.remove_prefix(dot + 1);
  }
}

bool is_ipv6(std::string_view text) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return count_groups(text, AtEnd::yes) == 8;
  const int before = count_groups(text.substr(0, gap), AtEnd::no);
  const int behind = count_groups(text.substr(gap + 2), AtEnd::yes);
  return before >= 0 && behind >= 0 && before + behind <= 7;
}

std::optional<std::uint16_t> parse_port_number(std::string_view text) {
  if (text.empty()) return {};
  std::uint32_t value = 0;
  for (const char c : text) {
    if (!is_of(c, kUriDigit)) return {};
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
    if (value > UINT16_MAX) return {};
  }
  return static_cast<std::uint16_t>(value);
}

std::optional<HostPort> parse_host(std::string_view text) {
  const std::size_t size = size_of_host(text);
  if (size > kMostHost) return {};
  HostPort parsed{{text.data(), size}, {}};
  text.remove_prefix(size);
  if (text.empty()) return parsed;
  if (size == 0 || text.front() != ':') return {};
  if (text.size() == 1) return parsed;
  parsed.port = parse_port_number(text.substr(1));
  if (!parsed.port) return {};
  return parsed;
}

bool is_valid_host(std::string_view value) { return parse_host(value).has_value(); }

}  // namespace spate::http
