#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "http/codec/characters.h"
#include "http/codec/syntax.h"
#include "spate/http/proxy.h"
#include "spate/http/url.h"
#include "spate/net/address.h"
#include "spate/net/network.h"

namespace spate::http {

namespace {

constexpr std::string_view kLoopback = "localhost,127.0.0.0/8,::1";

// ---- parsing of no_proxy

struct Entry {
  std::string_view host;  // Without brackets.
  std::optional<std::uint64_t> port;
  std::string_view network;  // The host, with the prefix length of a network.
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  return parse_number(text, Overflow::saturates);
}

// One colon begins a port. Several, without brackets, are an IPv6 address.
Entry parse_entry(std::string_view text) {
  Entry entry{text, {}, {}};
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const bool has_port = colon != std::string_view::npos && colon == text.rfind(':');
  if (has_port) {
    entry.port = number_of(text.substr(colon + 1)).value_or(0);
    entry.host = text.substr(0, colon);
  }
  if (bracket != std::string_view::npos) entry.host = text.substr(1, bracket - 1);
  entry.network = entry.host;
  return entry;
}

bool covers_address(const Entry& entry, const Address& address) {
  const Result<Network> known = Network::parse(entry.network);
  return known && known->contains(address);
}

bool covers_name(const Entry& entry, std::string_view name) {
  std::string_view known = entry.host;
  if (known.starts_with("*.")) known.remove_prefix(1);
  if (known.starts_with('.')) known.remove_prefix(1);
  if (name.ends_with('.')) name.remove_suffix(1);
  if (known.ends_with('.')) known.remove_suffix(1);
  if (known.contains('/') || known.empty() || known.size() > name.size()) return false;
  const std::size_t before = name.size() - known.size();
  return equal_ignoring_case(name.substr(before), known) &&
         (before == 0 || name[before - 1] == '.');
}

bool is_direct(std::string_view list, const Url& url) {
  const Result<Address> address = Address::ip(url.host_name(), 0);
  constexpr std::string_view kBetween = ", \t";
  while (!list.empty()) {
    const std::size_t size = std::min(list.find_first_of(kBetween), list.size());
    const std::string_view text = list.substr(0, size);
    list.remove_prefix(std::min(size + 1, list.size()));
    if (text == "*") return true;
    const Entry entry = parse_entry(text);
    if (entry.port && *entry.port != url.port()) continue;
    if (address ? covers_address(entry, *address) : covers_name(entry, url.host_name()))
      return true;
  }
  return false;
}

// ---- the environment

std::string_view variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

Result<Proxy> parse_variable(std::string_view text) {
  if (text.empty()) return Proxy();
  return Proxy::parse(text.contains("://") ? std::string(text) : "http://" + std::string(text));
}

}  // namespace

Proxy ProxySettings::proxy_for(const Url& url) const {
  if (is_direct(no_proxy, url)) return {};
  return url.is_secure() && for_https ? *for_https : proxy;
}

Result<ProxySettings> ProxySettings::from_environment() {
  const std::string_view all = variable({"all_proxy", "ALL_PROXY"});
  const std::string_view plain = variable({"http_proxy"});
  const std::string_view secure = variable({"https_proxy", "HTTPS_PROXY"});
  Result<Proxy> proxy = parse_variable(plain.empty() ? all : plain);
  Result<Proxy> for_https = parse_variable(secure.empty() ? all : secure);
  if (!proxy) return std::unexpected(proxy.error());
  if (!for_https) return std::unexpected(for_https.error());
  std::string direct(variable({"no_proxy", "NO_PROXY"}));
  direct.append(",").append(kLoopback);
  return ProxySettings{std::move(*proxy), std::move(*for_https), std::move(direct)};
}

}  // namespace spate::http
