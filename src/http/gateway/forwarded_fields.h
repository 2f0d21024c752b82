// Selects the fields of a message that are forwarded, and adds those of a gateway.
#pragma once

#include <string_view>

#include "spate/http/fields.h"
#include "spate/http/gateway.h"
#include "spate/http/request.h"
#include "spate/http/response.h"

namespace spate::http {

// Each function returns false when memory runs out.

bool add_request_fields(const Request& request, const GatewayOptions& options, Fields& fields);
// As add_request_fields(), for the trailers.
bool add_request_trailers(FieldsView from, const GatewayOptions& options, Fields& fields);
bool add_response_fields(const Response& response, const GatewayOptions& options, Fields& fields);
// Adds the fields of an interim response.
bool add_informational_fields(FieldsView from, Fields& fields);

// Returns whether the request must not be forwarded: Max-Forwards is 0 (RFC 9110 §7.6.2).
bool is_at_last_hop(const Request& request);

// Returns the protocol to which the client asks to upgrade, if it is allowed; otherwise empty.
std::string_view wanted_upgrade(const Request& request, const GatewayOptions& options);

}  // namespace spate::http
