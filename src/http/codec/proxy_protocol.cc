#include "http/codec/proxy_protocol.h"

#include <algorithm>
#include <optional>

#include "http/codec/host.h"

namespace spate::http {

namespace {

using State = ProxyHeader::State;

constexpr std::string_view kLineStart = "PROXY ";
constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kFixedPart = 16;
constexpr std::size_t kPathField = 108;

ProxyHeader proxy_unfinished(std::size_t size) {
  return {.state = State::unfinished, .size = size};
}
ProxyHeader proxy_whole(std::size_t size) { return {.state = State::whole, .size = size}; }

// Whether what there is of both is the same.
bool may_begin_with(std::string_view text, std::string_view start) {
  const std::size_t size = std::min(text.size(), start.size());
  return text.substr(0, size) == start.substr(0, size);
}

// Removes and returns the word in front of a blank; none without one.
std::optional<std::string_view> take_proxy_word(std::string_view& line) {
  const std::size_t size = line.find(' ');
  if (size == std::string_view::npos) return {};
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(size + 1);
  return word;
}

std::optional<std::uint16_t> parse_proxy_port(std::string_view text) {
  if (text.size() > 1 && text.starts_with('0')) return {};
  return parse_port_number(text);
}

// "source destination port port".
bool parse_line_addresses(std::string_view line, bool (*is_address)(std::string_view),
                          ProxyHeader& header) {
  const auto source = take_proxy_word(line);
  const auto destination = take_proxy_word(line);
  const auto source_port = take_proxy_word(line);
  if (!source || !destination || !source_port) return false;
  const auto from = parse_proxy_port(*source_port);
  const auto to = parse_proxy_port(line);
  if (!is_address(*source) || !is_address(*destination) || !from || !to) return false;
  header.source = Address::ip(*source, *from).value_or(Address());
  header.destination = Address::ip(*destination, *to).value_or(Address());
  return true;
}

ProxyHeader parse_proxy_line(std::string_view text) {
  const std::string_view within = text.substr(0, kMostProxyLine);
  const std::size_t end = within.find('\n');
  if (end == std::string_view::npos)
    return text.size() < kMostProxyLine ? proxy_unfinished(text.size() + 1) : ProxyHeader();
  std::string_view line = within.substr(0, end);
  if (!line.ends_with('\r')) return {};
  line = line.substr(kLineStart.size(), line.size() - 1 - kLineStart.size());
  ProxyHeader header = proxy_whole(end + 1);
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return header;
  const auto family = take_proxy_word(line);
  if (family == "TCP4" && parse_line_addresses(line, is_ipv4, header)) return header;
  if (family == "TCP6" && parse_line_addresses(line, is_ipv6, header)) return header;
  return {};
}

std::size_t big_endian(Bytes two) {
  return std::to_integer<std::size_t>(two[0]) << 8 | std::to_integer<std::size_t>(two[1]);
}

Address ip_in(Bytes host, Bytes port) {
  return Address::ip(host, static_cast<std::uint16_t>(big_endian(port))).value_or(Address());
}

// The path of a unix socket, an abstract name if it begins with NUL; filled up with NULs.
Address path_in(Bytes field) {
  std::string_view path = text_of(field);
  path = path.substr(0, path.find_last_not_of('\0') + 1);
  if (path.starts_with('\0')) return Address::abstract(path.substr(1)).value_or(Address());
  return Address::path(path.substr(0, path.find('\0'))).value_or(Address());
}

// Reads the addresses at the front of `body`. The size that they take up; none for another family,
// or if they do not fit.
std::optional<std::size_t> read_addresses(unsigned family, Bytes body, ProxyHeader& header) {
  constexpr std::size_t kSizes[] = {0, 12, 36, 2 * kPathField};
  if (family >= std::size(kSizes) || body.size() < kSizes[family]) return {};
  const std::size_t size = kSizes[family];
  if (family == 3) {
    header.source = path_in(body.first(kPathField));
    header.destination = path_in(body.subspan(kPathField, kPathField));
  } else if (family != 0) {
    const std::size_t host = (size - 4) / 2;
    header.source = ip_in(body.first(host), body.subspan(2 * host, 2));
    header.destination = ip_in(body.subspan(host, host), body.subspan(2 * host + 2, 2));
  }
  return size;
}

bool are_extensions(Bytes bytes) {
  while (!bytes.empty()) {
    if (bytes.size() < 3) return false;
    const std::size_t size = 3 + big_endian(bytes.subspan(1, 2));
    if (size > bytes.size()) return false;
    bytes = bytes.subspan(size);
  }
  return true;
}

ProxyHeader parse_proxy_block(Bytes bytes) {
  if (bytes.size() < kFixedPart) return proxy_unfinished(kFixedPart);
  const auto version_and_command = std::to_integer<unsigned>(bytes[12]);
  const auto family_and_protocol = std::to_integer<unsigned>(bytes[13]);
  const bool is_local = version_and_command == 0x20;
  const std::size_t size = kFixedPart + big_endian(bytes.subspan(14, 2));
  if ((!is_local && version_and_command != 0x21) || (family_and_protocol & 15) > 2) return {};
  if (size > kMostProxyHeader) return {};
  if (bytes.size() < size) return proxy_unfinished(size);
  ProxyHeader header = proxy_whole(size);
  if (is_local) return header;
  const Bytes body = bytes.subspan(kFixedPart, size - kFixedPart);
  const auto used = read_addresses(family_and_protocol >> 4, body, header);
  if (!used || !are_extensions(body.subspan(*used))) return {};
  header.extensions = body.subspan(*used);
  return header;
}

}  // namespace

ProxyHeader parse_proxy_header(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (text.empty()) return proxy_unfinished(1);
  if (may_begin_with(text, kSignature)) return parse_proxy_block(bytes);
  if (!may_begin_with(text, kLineStart)) return {};
  if (text.size() < kLineStart.size()) return proxy_unfinished(kLineStart.size());
  return parse_proxy_line(text);
}

}  // namespace spate::http
