#include "spate/net/address.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <functional>

#include "sys/address.h"

namespace spate {

namespace {

constexpr std::size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t kPathAt = offsetof(sockaddr_un, sun_path);
constexpr std::size_t kFamilyEnd = sys::kFamilyAt + sizeof(sa_family_t);

std::unexpected<std::error_code> failed(std::errc error) {
  return std::unexpected(std::error_code(static_cast<int>(error), std::system_category()));
}

bool is_number(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

Result<std::uint16_t> parse_port(std::string_view text) {
  if (!is_number(text)) return failed(std::errc::invalid_argument);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc()) return failed(std::errc::result_out_of_range);
  return port;
}

// Parses an interface's name or number.
Result<std::uint32_t> parse_scope(std::string_view text) {
  if (text.empty()) return failed(std::errc::invalid_argument);
  if (const std::uint32_t index = sys::interface_index(text)) return index;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0)
    return failed(std::errc::no_such_device);
  return number;
}

template <class System>
System as(const void* bytes) {
  System system;
  std::memcpy(&system, bytes, sizeof(system));
  return system;
}

sa_family_t family_in(const unsigned char* bytes) {
  return as<sa_family_t>(bytes + sys::kFamilyAt);
}

sockaddr_in ipv4(std::uint32_t address, std::uint16_t port) {
  sockaddr_in system{};
  system.sin_family = AF_INET;
  system.sin_port = htons(port);
  system.sin_addr.s_addr = htonl(address);
  return system;
}

sockaddr_in6 ipv6(const in6_addr& address, std::uint16_t port) {
  sockaddr_in6 system{};
  system.sin6_family = AF_INET6;
  system.sin6_port = htons(port);
  system.sin6_addr = address;
  return system;
}

std::string with_scope(std::string_view host, std::uint32_t scope) {
  std::string text(host);
  if (scope == 0) return text;
  char name[IF_NAMESIZE];
  const std::string_view known = sys::interface_name(scope, name);
  return text + '%' + (known.empty() ? std::to_string(scope) : std::string(known));
}

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kPath = "path:";

// A path that begins with '@' gets the prefix "path:", because "unix:@" denotes abstract names.
std::string unix_text(bool is_abstract, std::string_view name) {
  std::string text(!is_abstract && name.starts_with('@') ? kPath : kUnix);
  if (is_abstract) text += '@';
  return text.append(name);
}

}  // namespace

template <class System>
Address Address::make(const System& system, std::size_t size) {
  static_assert(sizeof(System) <= kCapacity);
  Address address;
  std::memcpy(address.bytes_, &system, sizeof(system));
  address.size_ = static_cast<std::uint32_t>(size);
  return address;
}

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with('/')) return path(text);
  if (text.starts_with(kPath)) return path(text.substr(kPath.size()));
  if (text.starts_with(kUnix)) {
    text.remove_prefix(kUnix.size());
    return text.starts_with('@') ? abstract(text.substr(1)) : path(text);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return failed(std::errc::invalid_argument);
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return std::unexpected(port.error());
  std::string_view host = text.substr(0, colon);
  const bool has_colon = host.find(':') != std::string_view::npos;
  const bool in_brackets = host.size() >= 2 && host.starts_with('[') && host.ends_with(']');
  if (has_colon != in_brackets) return failed(std::errc::invalid_argument);
  return ip(in_brackets ? host.substr(1, host.size() - 2) : host, *port);
}

Result<Address> Address::parse_listen(std::string_view text) {
  const std::string_view after_colon = text.starts_with(':') ? text.substr(1) : text;
  if (!is_number(after_colon)) return parse(text);
  const auto port = parse_port(after_colon);
  if (!port) return std::unexpected(port.error());
  return any_ipv6(*port);
}

Result<Address> Address::ip(std::string_view host, std::uint16_t port) {
  in_addr four;
  if (sys::parse_ip(AF_INET, host, &four)) return make(ipv4(ntohl(four.s_addr), port), 16);
  const std::size_t percent = host.find('%');
  in6_addr six;
  if (!sys::parse_ip(AF_INET6, host.substr(0, percent), &six))
    return failed(std::errc::invalid_argument);
  sockaddr_in6 system = ipv6(six, port);
  if (percent != std::string_view::npos) {
    const auto scope = parse_scope(host.substr(percent + 1));
    if (!scope) return std::unexpected(scope.error());
    system.sin6_scope_id = *scope;
  }
  return make(system, sizeof(system));
}

Result<Address> Address::ip(Bytes host, std::uint16_t port) {
  if (host.size() == 4) {
    std::uint32_t four;
    std::memcpy(&four, host.data(), sizeof(four));
    return make(ipv4(ntohl(four), port), sizeof(sockaddr_in));
  }
  if (host.size() != 16) return failed(std::errc::invalid_argument);
  in6_addr six;
  std::memcpy(&six, host.data(), sizeof(six));
  return make(ipv6(six, port), sizeof(sockaddr_in6));
}

Result<Address> Address::path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos)
    return failed(std::errc::invalid_argument);
  if (path.size() > kPathMax) return failed(std::errc::filename_too_long);
  sockaddr_un system{};
  system.sun_family = AF_UNIX;
  path.copy(system.sun_path, kPathMax);
  return make(system, kPathAt + path.size() + 1);
}

Result<Address> Address::abstract(std::string_view name) {
  if (!sys::kHasAbstractNames) return failed(std::errc::operation_not_supported);
  if (name.size() > kPathMax) return failed(std::errc::filename_too_long);
  sockaddr_un system{};
  system.sun_family = AF_UNIX;
  name.copy(system.sun_path + 1, kPathMax);
  return make(system, kPathAt + 1 + name.size());
}

Address Address::any_ipv4(std::uint16_t port) { return make(ipv4(INADDR_ANY, port), 16); }
Address Address::loopback_ipv4(std::uint16_t port) { return make(ipv4(INADDR_LOOPBACK, port), 16); }
Address Address::any_ipv6(std::uint16_t port) {
  return make(ipv6(in6addr_any, port), sizeof(sockaddr_in6));
}
Address Address::loopback_ipv6(std::uint16_t port) {
  return make(ipv6(in6addr_loopback, port), sizeof(sockaddr_in6));
}

Result<Address> Address::from_system(const void* address, std::size_t size) {
  if (size < kFamilyEnd || size > kCapacity) return failed(std::errc::invalid_argument);
  Address copy;
  std::memcpy(copy.bytes_, address, size);
  copy.size_ = static_cast<std::uint32_t>(size);
  switch (family_in(copy.bytes_)) {
    case AF_UNSPEC:
      return Address();
    case AF_UNIX:
      return copy.as_unix();
    case AF_INET:
      if (size != sizeof(sockaddr_in)) return failed(std::errc::invalid_argument);
      return copy;
    case AF_INET6:
      if (size != sizeof(sockaddr_in6)) return failed(std::errc::invalid_argument);
      return copy;
    default:
      return failed(std::errc::address_family_not_supported);
  }
}

// An unnamed socket has only the family. If a path fills sun_path, the kernel counts a NUL after
// the struct.
Result<Address> Address::as_unix() const {
  if (size_ <= kPathAt) return Address();
  if (!sys::kHasAbstractNames && bytes_[kPathAt] == '\0') return Address();
  if (size_ > sizeof(sockaddr_un) + 1) return failed(std::errc::invalid_argument);
  Address copy = *this;
  copy.size_ = std::min(size_, static_cast<std::uint32_t>(sizeof(sockaddr_un)));
  return copy;
}

Address::Family Address::family() const {
  switch (family_in(bytes_)) {
    case AF_INET:
      return Family::ipv4;
    case AF_INET6:
      return Family::ipv6;
    case AF_UNIX:
      return Family::local;
    default:
      return Family::none;
  }
}

std::uint16_t Address::port() const {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return is_ip() ? ntohs(as<sockaddr_in>(bytes_).sin_port) : std::uint16_t{0};
}

Address Address::with_port(std::uint16_t port) const {
  Address copy = *this;
  if (!is_ip()) return copy;
  const std::uint16_t network = htons(port);
  std::memcpy(copy.bytes_ + offsetof(sockaddr_in, sin_port), &network, sizeof(network));
  return copy;
}

std::string Address::host() const {
  char text[sys::kAddressText];
  if (family() == Family::ipv4) {
    const in_addr address = as<sockaddr_in>(bytes_).sin_addr;
    return std::string(sys::print_ip(AF_INET, &address, text));
  }
  if (family() != Family::ipv6) return {};
  const in6_addr address = as<sockaddr_in6>(bytes_).sin6_addr;
  return with_scope(sys::print_ip(AF_INET6, &address, text), scope());
}

std::uint32_t Address::scope() const {
  return family() == Family::ipv6 ? as<sockaddr_in6>(bytes_).sin6_scope_id : 0;
}

bool Address::is_abstract() const {
  return family() == Family::local && size_ > kPathAt && bytes_[kPathAt] == '\0';
}

std::string_view Address::name() const {
  if (family() != Family::local || size_ <= kPathAt) return {};
  const char* name = reinterpret_cast<const char*>(bytes_) + kPathAt;
  const std::size_t length = size_ - kPathAt;
  if (is_abstract()) return {name + 1, length - 1};
  return {name, strnlen(name, length)};
}

Address Address::unmapped() const {
  if (family() != Family::ipv6) return *this;
  const auto system = as<sockaddr_in6>(bytes_);
  if (!IN6_IS_ADDR_V4MAPPED(&system.sin6_addr)) return *this;
  std::uint32_t four;
  std::memcpy(&four, system.sin6_addr.s6_addr + 12, sizeof(four));
  return make(ipv4(ntohl(four), port()), sizeof(sockaddr_in));
}

std::string Address::to_string() const {
  switch (family()) {
    case Family::ipv4:
      return host() + ':' + std::to_string(port());
    case Family::ipv6:
      return '[' + host() + "]:" + std::to_string(port());
    case Family::local:
      return unix_text(is_abstract(), name());
    case Family::none:
      break;
  }
  return "none";
}

Bytes Address::ip_bytes() const {
  const auto* bytes = reinterpret_cast<const std::byte*>(bytes_);
  if (family() == Family::ipv4) return {bytes + offsetof(sockaddr_in, sin_addr), 4};
  if (family() == Family::ipv6) return {bytes + offsetof(sockaddr_in6, sin6_addr), 16};
  return {};
}

std::string_view Address::host_bytes() const { return is_ip() ? text_of(ip_bytes()) : name(); }

// Compares field by field: the other bytes are not initialized.
bool Address::operator==(const Address& other) const {
  return family() == other.family() && is_abstract() == other.is_abstract() &&
         port() == other.port() && scope() == other.scope() && host_bytes() == other.host_bytes();
}

std::size_t Address::host_hash() const { return std::hash<std::string_view>()(host_bytes()); }

}  // namespace spate
