#include "spate/net/network.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace spate {

namespace {

constexpr std::string_view kUnixSockets = "unix:";
constexpr unsigned kMappedPrefix = 96;  // ::ffff:0:0/96

std::unexpected<std::error_code> invalid_network() {
  return std::unexpected(make_error_code(std::errc::invalid_argument));
}

// Parses a decimal number of one to three digits.
std::optional<unsigned> parse_prefix(std::string_view text) {
  unsigned prefix = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), prefix);
  if (text.empty() || text.size() > 3 || error != std::errc() || end != text.data() + text.size())
    return {};
  return prefix;
}

// Returns a byte of which the first `bits` are ones; all of them if `bits` is more than eight.
unsigned char mask_of(unsigned bits) {
  return bits >= 8 ? 0xff : static_cast<unsigned char>(0xff00U >> bits);
}

}  // namespace

Network::Network(const Address& address)
    : Network(address.unmapped(), 8 * static_cast<unsigned>(address.unmapped().ip_bytes().size())) {
}

Network::Network(const Address& address, unsigned prefix) {
  if (address.family() == Address::Family::none) return;
  kind_ = address.is_ip() ? Kind::ip : Kind::local;
  const Bytes bytes = address.ip_bytes();
  prefix_ = static_cast<std::uint8_t>(prefix);
  size_ = static_cast<std::uint8_t>(bytes.size());
  for (unsigned i = 0; i < size_ && 8 * i < prefix; ++i)
    bytes_[i] = std::to_integer<unsigned char>(bytes[i]) & mask_of(prefix - 8 * i);
}

Result<Network> Network::parse(std::string_view text) {
  Network network;
  if (text == kUnixSockets) {
    network.kind_ = Kind::local;
    return network;
  }
  const std::size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  if (host.contains('%')) return invalid_network();
  const Result<Address> written = Address::ip(host, 0);
  if (!written) return std::unexpected(written.error());
  if (slash == std::string_view::npos) return Network(*written);
  const Address address = written->unmapped();
  const bool is_mapped = address.family() != written->family();
  const std::optional<unsigned> prefix = parse_prefix(text.substr(slash + 1));
  if (!prefix || *prefix > 8 * written->ip_bytes().size()) return invalid_network();
  if (!is_mapped || *prefix < kMappedPrefix) return Network(*written, *prefix);
  return Network(address, *prefix - kMappedPrefix);
}

bool Network::contains(const Address& address) const {
  const Address plain = address.unmapped();
  if (kind_ != Kind::ip) return kind_ == Kind::local && !plain.is_ip();
  const Bytes bytes = plain.ip_bytes();
  if (bytes.size() != size_) return false;
  for (unsigned i = 0; i < size_ && 8 * i < prefix_; ++i) {
    const unsigned char byte = std::to_integer<unsigned char>(bytes[i]) & mask_of(prefix_ - 8 * i);
    if (byte != bytes_[i]) return false;
  }
  return true;
}

std::string Network::to_string() const {
  if (kind_ == Kind::none) return {};
  if (kind_ == Kind::local) return std::string(kUnixSockets);
  const Bytes bytes = std::as_bytes(std::span(bytes_)).first(size_);
  return Address::ip(bytes, 0).value_or(Address()).host() + "/" + std::to_string(prefix_);
}

}  // namespace spate
