#include "spate/http/hosts.h"

#include <algorithm>
#include <utility>

#include "http/server/exchange_state.h"
#include "spate/assert.h"

namespace spate::http {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the host in lower case, without the port and the trailing dot.
std::string name_in(std::string_view authority) {
  const std::size_t from = authority.starts_with('[') ? authority.find(']') : 0;
  std::string name(authority.substr(0, authority.find(':', from)));
  if (name.ends_with('.')) name.pop_back();
  std::ranges::transform(name, name.begin(), lower);
  return name;
}

}  // namespace

Hosts::Hosts() = default;
Hosts::Hosts(Hosts&& other) noexcept = default;
Hosts& Hosts::operator=(Hosts&& other) noexcept = default;
Hosts::~Hosts() = default;

void Hosts::add(std::string_view host, Service& service) {
  if (host.starts_with("*.")) host.remove_prefix(1);
  const bool is_new = services_.emplace(name_in(host), &service).second;
  SPATE_ASSERT(is_new, "the host already has a service");
  static_cast<void>(is_new);
}

Service* Hosts::find(std::string_view host) const {
  const auto exact = services_.find(host);
  if (exact != services_.end() && !host.starts_with('.')) return exact->second;
  for (std::size_t dot = host.find('.', 1); dot < host.size(); dot = host.find('.', dot + 1)) {
    const auto wide = services_.find(host.substr(dot));
    if (wide != services_.end()) return wide->second;
  }
  return otherwise_;
}

void Hosts::on_request(Exchange exchange) {
  Service* service = find(name_in(exchange.request().host()));
  if (service != nullptr) return service->on_request(std::move(exchange));
  ExchangeState::of(exchange)->respond_refusal(
      {Status::misdirected_request, "this host is not served here"});
}

}  // namespace spate::http
