#include "http/content/forwarded.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "http/codec/characters.h"
#include "http/codec/host.h"
#include "http/codec/syntax.h"

namespace spate::http {

namespace {

constexpr std::size_t kMostNode = 64;  // Bytes of an address with its port.

bool is_escaped(std::string_view text, std::size_t at) {
  std::size_t backslashes = 0;
  while (backslashes < at && text[at - backslashes - 1] == '\\') ++backslashes;
  return backslashes % 2 != 0;
}

// Removes and returns the element at the end of a list. With `has_quotes`, separators in quoted
// strings do not count.
std::string_view take_last_element(std::string_view& list, char separator, bool has_quotes) {
  bool is_quoted = false;
  for (std::size_t at = list.size(); at-- > 0;) {
    const char c = list[at];
    if (has_quotes && c == '"' && !(is_quoted && is_escaped(list, at))) is_quoted = !is_quoted;
    if (c != separator || is_quoted) continue;
    const std::string_view element = list.substr(at + 1);
    list = list.substr(0, at);
    return trimmed(element);
  }
  return trimmed(std::exchange(list, {}));
}

// Parses the port of a node: a number, or an identifier that hides it (RFC 7239 §6.2), which is 0.
std::optional<std::uint16_t> parse_node_port(std::string_view text) {
  if (text.size() > 1 && text.front() == '_') return std::uint16_t{0};
  return text.size() > 5 ? std::nullopt : parse_port_number(text);
}

// Parses "192.0.2.1", "192.0.2.1:80", "[2001:db8::1]" and "[2001:db8::1]:80", and without a port
// also "2001:db8::1", as many proxies write it. nullopt for "unknown", "_hidden" and anything else.
std::optional<Address> parse_node(std::string_view text) {
  if (text.size() > kMostNode) return {};
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!is_ipv6(host)) return {};
  } else if (const std::size_t colon = text.find(':'); colon == text.rfind(':')) {
    host = text.substr(0, colon);
    port = text.substr(std::min(colon, text.size()));
    if (!is_ipv4(host)) return {};
  } else if (!is_ipv6(host)) {
    return {};
  }
  std::optional<std::uint16_t> number = std::uint16_t{0};
  if (!port.empty()) number = parse_node_port(port.starts_with(':') ? port.substr(1) : "");
  if (!number) return {};
  const Result<Address> address = Address::ip(host, *number);
  if (!address) return {};
  return address->unmapped();
}

// Returns the address in the "for" parameter of an element of Forwarded. nullopt unless the element
// is valid and has exactly one.
std::optional<Address> parse_forwarded_element(std::string_view element) {
  std::optional<std::string_view> node;
  while (!element.empty()) {
    const std::string_view pair = take_last_element(element, ';', true);
    if (pair.empty()) continue;
    const std::string_view name = token_at(pair);
    if (name.empty() || name.size() == pair.size() || pair[name.size()] != '=') return {};
    const std::string_view value = pair.substr(name.size() + 1);
    const bool is_valid = value.starts_with('"') ? size_of_quoted(value) == value.size()
                                                 : token_at(value).size() == value.size();
    if (!is_valid || value.empty()) return {};
    if (!equal_ignoring_case(name, "for")) continue;
    if (node) return {};
    node = value;
  }
  char room[kMostNode + 2];
  if (!node || node->size() > sizeof room) return {};
  return parse_node(unquote(*node, room));
}

// The values of a field, last line first.
class LinesFromTheRight {
 public:
  LinesFromTheRight(const FieldsView& fields, std::string_view name) {
    for (const std::string_view line : fields.all(name)) lines_[count_++ % kMostHops] = line;
    left_ = std::min(count_, kMostHops);
  }
  // Removes and returns the next one; nullopt at the end.
  std::optional<std::string_view> take() {
    if (left_ == 0) return {};
    --left_;
    return lines_[--count_ % kMostHops];
  }

 private:
  std::string_view lines_[kMostHops];
  std::size_t count_ = 0;
  std::size_t left_ = 0;
};

}  // namespace

bool is_in_any(std::span<const Network> networks, const Address& address) {
  return std::ranges::any_of(networks,
                             [&](const Network& network) { return network.contains(address); });
}

Address client_behind(const FieldsView& fields, std::string_view name, const Address& last,
                      std::span<const Network> trusted) {
  const bool is_forwarded = equal_ignoring_case(name, "Forwarded");
  LinesFromTheRight lines(fields, name);
  Address client = last;
  std::size_t hops = 0;
  while (auto line = lines.take()) {
    while (!line->empty()) {
      const std::string_view element = take_last_element(*line, ',', is_forwarded);
      if (element.empty()) continue;
      const auto address = is_forwarded ? parse_forwarded_element(element) : parse_node(element);
      if (!address) return client;
      client = *address;
      if (++hops == kMostHops || !is_in_any(trusted, client)) return client;
    }
  }
  return client;
}

}  // namespace spate::http
