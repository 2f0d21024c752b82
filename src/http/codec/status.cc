#include "spate/http/status.h"

#include <algorithm>

namespace spate::http {

namespace {

struct Named {
  Status status;
  std::string_view reason;
};

// In ascending order.
constexpr Named kNamed[] = {
    {Status::continue_, "Continue"},
    {Status::switching_protocols, "Switching Protocols"},
    {Status::early_hints, "Early Hints"},
    {Status::ok, "OK"},
    {Status::created, "Created"},
    {Status::accepted, "Accepted"},
    {Status::non_authoritative_information, "Non-Authoritative Information"},
    {Status::no_content, "No Content"},
    {Status::reset_content, "Reset Content"},
    {Status::partial_content, "Partial Content"},
    {Status::multiple_choices, "Multiple Choices"},
    {Status::moved_permanently, "Moved Permanently"},
    {Status::found, "Found"},
    {Status::see_other, "See Other"},
    {Status::not_modified, "Not Modified"},
    {Status::temporary_redirect, "Temporary Redirect"},
    {Status::permanent_redirect, "Permanent Redirect"},
    {Status::bad_request, "Bad Request"},
    {Status::unauthorized, "Unauthorized"},
    {Status::payment_required, "Payment Required"},
    {Status::forbidden, "Forbidden"},
    {Status::not_found, "Not Found"},
    {Status::method_not_allowed, "Method Not Allowed"},
    {Status::not_acceptable, "Not Acceptable"},
    {Status::proxy_authentication_required, "Proxy Authentication Required"},
    {Status::request_timeout, "Request Timeout"},
    {Status::conflict, "Conflict"},
    {Status::gone, "Gone"},
    {Status::length_required, "Length Required"},
    {Status::precondition_failed, "Precondition Failed"},
    {Status::content_too_large, "Content Too Large"},
    {Status::uri_too_long, "URI Too Long"},
    {Status::unsupported_media_type, "Unsupported Media Type"},
    {Status::range_not_satisfiable, "Range Not Satisfiable"},
    {Status::expectation_failed, "Expectation Failed"},
    {Status::misdirected_request, "Misdirected Request"},
    {Status::unprocessable_content, "Unprocessable Content"},
    {Status::too_early, "Too Early"},
    {Status::upgrade_required, "Upgrade Required"},
    {Status::precondition_required, "Precondition Required"},
    {Status::too_many_requests, "Too Many Requests"},
    {Status::request_header_fields_too_large, "Request Header Fields Too Large"},
    {Status::unavailable_for_legal_reasons, "Unavailable For Legal Reasons"},
    {Status::internal_server_error, "Internal Server Error"},
    {Status::not_implemented, "Not Implemented"},
    {Status::bad_gateway, "Bad Gateway"},
    {Status::service_unavailable, "Service Unavailable"},
    {Status::gateway_timeout, "Gateway Timeout"},
    {Status::http_version_not_supported, "HTTP Version Not Supported"},
    {Status::insufficient_storage, "Insufficient Storage"},
    {Status::network_authentication_required, "Network Authentication Required"},
};
static_assert(std::ranges::is_sorted(kNamed, {}, &Named::status));

}  // namespace

std::string_view reason_of(Status status) {
  const Named* named = std::ranges::lower_bound(kNamed, status, {}, &Named::status);
  return named != std::end(kNamed) && named->status == status ? named->reason : std::string_view();
}

}  // namespace spate::http
