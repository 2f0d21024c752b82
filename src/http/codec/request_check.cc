#include "http/codec/request_check.h"

namespace spate::http {

namespace {

struct Authority {
  std::string_view text = {};
  HostPort host = {};
};

Refusal read_host(const RequestView& request, Authority& authority) {
  if ((request.repeated & bit_of(FieldId::host)) != 0) return bad_request("Host appears twice");
  const std::size_t index = request.fields.next(FieldId::host, 0);
  if (index == request.fields.size())
    return request.version == Version::http_1_0 ? Refusal() : bad_request("Host is missing");
  authority.text = request.fields.at(index).value;
  if (const auto host = parse_host(authority.text)) {
    authority.host = *host;
    return {};
  }
  return bad_request("Host is not a host");
}

}  // namespace

Refusal check_request(const RequestView& request, RequestTarget& target) {
  Authority authority;
  if (const Refusal refusal = read_host(request, authority)) return refusal;
  const auto parsed = parse_target(request.target, request.method);
  if (!parsed) return bad_request("the target does not fit the method");
  target = *parsed;
  if (!target.authority.empty()) return {};
  target.authority = authority.text;
  target.host = authority.host;
  return {};
}

}  // namespace spate::http
