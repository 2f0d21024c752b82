// Which fields of a message go on to the other connection, and what a gateway adds to them.
#pragma once

#include <string_view>

#include "spate/http/fields.h"
#include "spate/http/gateway.h"
#include "spate/http/request.h"
#include "spate/http/response.h"

namespace spate::http {

// Each of these is false when memory runs out.

bool add_request_fields(const Request& request, const GatewayOptions& options, Fields& fields);
bool add_response_fields(const Response& response, const GatewayOptions& options, Fields& fields);
// Of an answer before the answer.
bool add_informational_fields(FieldsView from, Fields& fields);

// The protocol that the client asks to go on with, if it is one of those allowed; else empty.
std::string_view wanted_upgrade(const Request& request, const GatewayOptions& options);

}  // namespace spate::http
