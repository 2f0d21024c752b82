#include "http/codec/request_check.h"

namespace spate::http {

namespace {

Refusal read_host(const RequestView& request, RequestTarget& target) {
  const auto value = request.fields.find(FieldId::host);
  if (!value)
    return request.version == Version::http_1_0 ? Refusal() : bad_request("there is no Host");
  if ((request.repeated & bit_of(FieldId::host)) != 0) return bad_request("Host is there twice");
  const auto host = parse_host(*value);
  if (!host || (host->host.empty() && !value->empty())) return bad_request("Host is not a host");
  target.authority = *value;
  target.host = *host;
  return {};
}

}  // namespace

Refusal check_request(const RequestView& request, RequestTarget& target) {
  RequestTarget hosted;
  if (const Refusal refusal = read_host(request, hosted)) return refusal;
  const auto parsed = parse_target(request.target, request.method);
  if (!parsed) return bad_request("the target is not one for the method");
  target = *parsed;
  if (!target.authority.empty()) return {};
  target.authority = hosted.authority;
  target.host = hosted.host;
  return {};
}

}  // namespace spate::http
