#include "http/gateway/forwarded_fields.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "http/codec/characters.h"
#include "http/codec/outgoing.h"
#include "http/codec/syntax.h"
#include "spate/net/address.h"

namespace spate::http {

namespace {

constexpr std::uint64_t kOfOneConnection =
    kFramingFields | bit_of(FieldId::proxy_authenticate) | bit_of(FieldId::proxy_authorization);
// Host is set from the request's host, Expect is decided again for the upstream, and the others are
// extended.
constexpr std::uint64_t kSetForRequests = bit_of(FieldId::host) | bit_of(FieldId::expect) |
                                          bit_of(FieldId::forwarded) |
                                          bit_of(FieldId::x_forwarded_for) |
                                          bit_of(FieldId::max_forwards);
constexpr std::uint64_t kSetForResponses = bit_of(FieldId::date);

bool is_in(FieldId id, std::uint64_t set) {
  return id != FieldId::other && (bit_of(id) & set) != 0;
}

// Fields in which a proxy in front of us states where a request comes from.
bool is_claim(std::string_view name) {
  constexpr std::string_view kPrefix = "X-Forwarded-";
  return equal_ignoring_case(name.substr(0, kPrefix.size()), kPrefix) ||
         equal_ignoring_case(name, "X-Real-IP");
}

// Not a standard field: CGI would map it to the variable HTTP_PROXY.
bool is_proxy_of_cgi(std::string_view name) { return equal_ignoring_case(name, "Proxy"); }

// CGI maps '-' and '_' to the same variable name.
bool is_ambiguous(std::string_view name, const GatewayOptions& options) {
  return !options.keep_underscores && name.contains('_');
}

bool is_before(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(a, b, {}, lower, lower);
}

// The names in Connection. A client may send thousands, so a long list is sorted.
class ConnectionNames {
 public:
  explicit ConnectionNames(FieldsView from) : list_(from.list(FieldId::connection)) {
    std::size_t count = 0;
    for ([[maybe_unused]] const std::string_view name : list_) {
      if (++count > kFew) break;
    }
    if (count > kFew) sort();
  }
  bool contains(std::string_view name) const {
    return sorted_.empty() ? list_.contains(name)
                           : std::ranges::binary_search(sorted_, name, is_before);
  }

 private:
  static constexpr std::size_t kFew = 8;

  void sort() {
    for (const std::string_view name : list_) sorted_.push_back(name);
    std::ranges::sort(sorted_, is_before);
  }

  const ListValues list_;
  std::vector<std::string_view> sorted_;
};

// Returns Max-Forwards for the methods of which a proxy may be the recipient.
std::optional<std::uint64_t> hops_left(const Request& request) {
  if (request.method() != Method::options && request.method() != Method::trace) return {};
  return parse_number(request[FieldId::max_forwards], Overflow::saturates);
}

// Decrements it for OPTIONS and TRACE; for other methods it is forwarded unchanged.
bool add_hops(const Request& request, Fields& fields) {
  if (const auto hops = hops_left(request))
    return *hops > 0 && fields.add(FieldId::max_forwards, std::to_string(*hops - 1));
  const auto value = request.fields().find(FieldId::max_forwards);
  return !value || fields.add(FieldId::max_forwards, *value);
}

// Adds all fields except the excluded ones and those that Connection names (RFC 9110 §7.6.1).
template <class IsLeftOut>
bool add_end_to_end(FieldsView from, Fields& to, IsLeftOut is_left_out) {
  const ConnectionNames named(from);
  return std::ranges::all_of(from, [&](const Field& field) {
    return is_in(field.id, kOfOneConnection) || is_left_out(field) || named.contains(field.name) ||
           to.add(field.name, field.value);
  });
}

bool add_via(Version version, const GatewayOptions& options, Fields& fields) {
  constexpr std::string_view kNumbers[] = {"1.0 ", "1.1 ", "2 "};
  const std::string_view number = kNumbers[static_cast<int>(version)];
  return fields.add(FieldId::via, std::string(number) + options.name);
}

std::string_view scheme_of(const Request& request) {
  return request.is_secure() ? "https" : "http";
}

// RFC 7239: an IPv6 address has brackets, so it must be a quoted string.
std::string forwarded_element(const Request& request, const Address& peer) {
  std::string element = "for=";
  if (peer.family() == Address::Family::ipv6) {
    element += "\"[" + peer.host() + "]\"";
  } else {
    element += peer.is_ip() ? peer.host() : "unknown";
  }
  if (!request.host().empty()) element += ";host=\"" + std::string(request.host()) + "\"";
  return element + ";proto=" + std::string(scheme_of(request));
}

// Appends to one line, because many programs read only one.
bool add_behind(FieldsView before, FieldId id, std::string_view last, Fields& fields) {
  std::string line;
  for (const std::string_view value : before.all(id)) line += std::string(value) + ", ";
  return fields.add(id, line.append(last));
}

bool add_origin(const Request& request, FieldsView before, Fields& fields) {
  const Address peer = request.peer().unmapped();
  const auto add_first = [&](FieldId id, std::string_view value) {
    return value.empty() || fields.contains(id) || fields.add(id, value);
  };
  const std::string host = peer.is_ip() ? peer.host() : "unknown";
  return add_behind(before, FieldId::forwarded, forwarded_element(request, peer), fields) &&
         add_behind(before, FieldId::x_forwarded_for, host, fields) &&
         add_first(FieldId::x_forwarded_host, request.host()) &&
         add_first(FieldId::x_forwarded_proto, scheme_of(request));
}

}  // namespace

bool add_request_fields(const Request& request, const GatewayOptions& options, Fields& fields) {
  const bool is_believed = options.clients == Clients::proxies;
  const FieldsView sent = request.fields();
  const bool is_added = add_end_to_end(sent, fields, [&](const Field& field) {
    return is_in(field.id, kSetForRequests) || is_proxy_of_cgi(field.name) ||
           is_ambiguous(field.name, options) || (!is_believed && is_claim(field.name));
  });
  const std::string_view host = request.host();
  return is_added && add_hops(request, fields) &&
         (host.empty() || fields.add(FieldId::host, host)) &&
         add_origin(request, is_believed ? sent : FieldsView(), fields) &&
         add_via(request.version(), options, fields);
}

// Some servers merge trailers into the header section, so the same fields are excluded.
bool add_request_trailers(FieldsView from, const GatewayOptions& options, Fields& fields) {
  const bool is_believed = options.clients == Clients::proxies;
  return add_end_to_end(from, fields, [&](const Field& field) {
    return is_proxy_of_cgi(field.name) || is_ambiguous(field.name, options) ||
           (!is_believed && (is_claim(field.name) || is_in(field.id, kSetForRequests)));
  });
}

bool is_at_last_hop(const Request& request) { return hops_left(request) == 0U; }

bool add_response_fields(const Response& response, const GatewayOptions& options, Fields& fields) {
  return add_end_to_end(response.fields(), fields,
                        [](const Field& field) { return is_in(field.id, kSetForResponses); }) &&
         add_via(response.version(), options, fields);
}

bool add_informational_fields(FieldsView from, Fields& fields) {
  return add_end_to_end(from, fields, [](const Field&) { return false; });
}

std::string_view wanted_upgrade(const Request& request, const GatewayOptions& options) {
  const FieldsView& fields = request.fields();
  if (request.version() == Version::http_1_0 || request.has_body() ||
      !fields.list(FieldId::connection).contains("upgrade"))
    return {};
  const ListValues asked = fields.list(FieldId::upgrade);
  for (const std::string& known : options.upgrades)
    if (asked.contains(known)) return known;
  return {};
}

}  // namespace spate::http
