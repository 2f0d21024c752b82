#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "spate/net/proxy_protocol.h"

namespace spate {

namespace {

using Family = Address::Family;
using HeaderState = ProxyHeader::State;

constexpr std::string_view kLineStart = "PROXY ";
constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::string_view kShortestLine = "PROXY UNKNOWN\r\n";
constexpr std::size_t kFixedPart = 16;
constexpr std::size_t kPathField = 108;

ProxyHeader proxy_unfinished(std::size_t size) {
  return {.state = HeaderState::unfinished, .size = size};
}
ProxyHeader proxy_whole(std::size_t size) { return {.state = HeaderState::whole, .size = size}; }

// Returns whether one of the two is a prefix of the other.
bool may_begin_with(std::string_view text, std::string_view start) {
  const std::size_t size = std::min(text.size(), start.size());
  return text.substr(0, size) == start.substr(0, size);
}

// Removes and returns the word before a blank; nullopt without one.
std::optional<std::string_view> take_proxy_word(std::string_view& line) {
  const std::size_t size = line.find(' ');
  if (size == std::string_view::npos) return {};
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(size + 1);
  return word;
}

std::optional<std::uint16_t> parse_proxy_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, port);
  const bool has_zero = text.size() > 1 && text.starts_with('0');
  if (has_zero || error != std::errc() || end != text_end) return {};
  return port;
}

// Parses an address of a family, without a scope. One without a family if it is invalid.
Address parse_proxy_host(std::string_view text, Family family, std::uint16_t port) {
  if (text.contains('%')) return {};
  const Address address = Address::ip(text, port).value_or(Address());
  return address.family() == family ? address : Address();
}

// Parses "source destination port port".
bool parse_line_addresses(std::string_view line, Family family, ProxyHeader& header) {
  const auto source = take_proxy_word(line);
  const auto destination = take_proxy_word(line);
  const auto source_port = take_proxy_word(line);
  if (!source || !destination || !source_port) return false;
  const auto from = parse_proxy_port(*source_port);
  const auto to = parse_proxy_port(line);
  if (!from || !to) return false;
  header.source = parse_proxy_host(*source, family, *from);
  header.destination = parse_proxy_host(*destination, family, *to);
  return header.source.is_ip() && header.destination.is_ip();
}

ProxyHeader parse_proxy_line(std::string_view text) {
  const std::string_view within = text.substr(0, kMostProxyLine);
  const std::size_t end = within.find('\n');
  if (end == std::string_view::npos)
    return text.size() < kMostProxyLine
               ? proxy_unfinished(std::max(text.size() + 1, kShortestLine.size()))
               : ProxyHeader();
  std::string_view line = within.substr(0, end);
  if (!line.ends_with('\r')) return {};
  line = line.substr(kLineStart.size(), line.size() - 1 - kLineStart.size());
  ProxyHeader header = proxy_whole(end + 1);
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return header;
  const auto family = take_proxy_word(line);
  if (family == "TCP4" && parse_line_addresses(line, Family::ipv4, header)) return header;
  if (family == "TCP6" && parse_line_addresses(line, Family::ipv6, header)) return header;
  return {};
}

std::size_t big_endian(Bytes two) {
  return std::to_integer<std::size_t>(two[0]) << 8 | std::to_integer<std::size_t>(two[1]);
}

Address ip_in(Bytes host, Bytes port) {
  return Address::ip(host, static_cast<std::uint16_t>(big_endian(port))).value_or(Address());
}

// Returns the path of a unix socket, or an abstract name if it begins with NUL; the field is padded
// with NULs.
Address path_in(Bytes field) {
  std::string_view path = text_of(field);
  path = path.substr(0, path.find_last_not_of('\0') + 1);
  if (path.starts_with('\0')) return Address::abstract(path.substr(1)).value_or(Address());
  return Address::path(path.substr(0, path.find('\0'))).value_or(Address());
}

// Parses the addresses at the front of `body`. Returns their size; nullopt for another family, or
// if they do not fit.
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

// ---- writing

void append_big_endian(std::string& text, std::size_t number) {
  text += static_cast<char>(number >> 8);
  text += static_cast<char>(number);
}

// Returns the 16 bytes of an IP address.
std::string mapped_bytes(const Address& address) {
  const std::string prefix = address.family() == Family::ipv4 ? std::string(10, '\0') + "\xff\xff"
                                                              : std::string();
  return prefix + std::string(text_of(address.ip_bytes()));
}

// Returns the text of an IP address, without a scope and as IPv6 if `is_wide`.
std::string line_host(const Address& address, bool is_wide) {
  const std::string bytes(is_wide ? mapped_bytes(address)
                                  : std::string(text_of(address.ip_bytes())));
  return Address::ip(bytes_of(bytes), 0).value_or(Address()).host();
}

std::string make_line(const Address& source, const Address& destination, bool is_wide) {
  if (!source.is_ip() || !destination.is_ip()) return std::string(kShortestLine);
  return std::string(kLineStart) + (is_wide ? "TCP6 " : "TCP4 ") + line_host(source, is_wide) +
         " " + line_host(destination, is_wide) + " " + std::to_string(source.port()) + " " +
         std::to_string(destination.port()) + "\r\n";
}

// Returns the field of a unix socket's path, or of its abstract name.
std::string path_field(const Address& address) {
  std::string field = address.is_abstract() ? std::string(1, '\0') : std::string();
  field += address.name();
  field.resize(kPathField);
  return field;
}

std::string make_block(const Address& source, const Address& destination, bool is_wide) {
  const bool is_ip = source.is_ip() && destination.is_ip();
  const bool is_local =
      source.family() == Family::local && destination.family() == Family::local;
  std::string body;
  char family = 0;
  if (is_ip) {
    family = is_wide ? 0x21 : 0x11;
    for (const Address& address : {source, destination})
      body += is_wide ? mapped_bytes(address) : std::string(text_of(address.ip_bytes()));
    append_big_endian(body, source.port());
    append_big_endian(body, destination.port());
  } else if (is_local) {
    family = 0x31;
    body = path_field(source) + path_field(destination);
  }
  std::string block(kSignature);
  block += is_ip || is_local ? '\x21' : '\x20';
  block += family;
  append_big_endian(block, body.size());
  return block + body;
}

}  // namespace

ProxyHeader parse_proxy_header(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (text.empty()) return proxy_unfinished(1);
  if (may_begin_with(text, kSignature)) return parse_proxy_block(bytes);
  if (!may_begin_with(text, kLineStart)) return {};
  if (text.size() < kLineStart.size()) return proxy_unfinished(kShortestLine.size());
  return parse_proxy_line(text);
}

std::string proxy_header(const Address& source, const Address& destination,
                         ProxyVersion version) {
  const Address from = source.unmapped();
  const Address to = destination.unmapped();
  const bool is_wide = from.family() == Family::ipv6 || to.family() == Family::ipv6;
  return version == ProxyVersion::v1 ? make_line(from, to, is_wide) : make_block(from, to, is_wide);
}

bool expects_proxy_header(ProxyProtocol protocol, std::span<const Network> proxies,
                          const Address& peer) {
  if (protocol != ProxyProtocol::from_proxies) return protocol == ProxyProtocol::always;
  return std::ranges::any_of(proxies,
                             [&](const Network& network) { return network.contains(peer); });
}

}  // namespace spate
