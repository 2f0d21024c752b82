#include "http/gateway/forwarded_fields.h"

#include <algorithm>
#include <string>

#include "http/codec/characters.h"
#include "http/codec/outgoing.h"
#include "spate/net/address.h"

namespace spate::http {

namespace {

constexpr std::uint64_t kOfOneConnection =
    kFramingFields | bit_of(FieldId::proxy_authenticate) | bit_of(FieldId::proxy_authorization);
// Host comes from what the request is for, Expect is asked anew, and the others are added to.
constexpr std::uint64_t kSetForRequests = bit_of(FieldId::host) | bit_of(FieldId::expect) |
                                          bit_of(FieldId::forwarded) |
                                          bit_of(FieldId::x_forwarded_for);
constexpr std::uint64_t kSetForAnswers = bit_of(FieldId::date);

bool is_in(FieldId id, std::uint64_t set) {
  return id != FieldId::other && (bit_of(id) & set) != 0;
}

// Where a request comes from, as somebody in front of us says.
bool is_claim(std::string_view name) {
  constexpr std::string_view kPrefix = "X-Forwarded-";
  return equal_ignoring_case(name.substr(0, kPrefix.size()), kPrefix) ||
         equal_ignoring_case(name, "X-Real-IP");
}

// It is of no standard, and becomes HTTP_PROXY of a CGI program.
bool is_proxy_of_cgi(std::string_view name) { return equal_ignoring_case(name, "Proxy"); }

// All but those left out and those that Connection names (RFC 9110 §7.6.1).
template <class IsLeftOut>
bool add_end_to_end(FieldsView from, Fields& to, IsLeftOut is_left_out) {
  const ListValues named = from.list(FieldId::connection);
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

// RFC 7239: an IPv6 address has brackets, and these are for quoted strings only.
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

// One line, as many programs read only one.
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
           (!is_believed && is_claim(field.name));
  });
  const std::string_view host = request.host();
  return is_added && (host.empty() || fields.add(FieldId::host, host)) &&
         add_origin(request, is_believed ? sent : FieldsView(), fields) &&
         add_via(request.version(), options, fields);
}

bool add_response_fields(const Response& response, const GatewayOptions& options, Fields& fields) {
  return add_end_to_end(response.fields(), fields,
                        [](const Field& field) { return is_in(field.id, kSetForAnswers); }) &&
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
