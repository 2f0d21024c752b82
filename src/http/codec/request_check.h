// Checks of a request beyond its syntax: exactly one Host (RFC 9112 §3.2), and a target that is
// valid for its method.
#pragma once

#include "http/codec/head.h"
#include "http/codec/refusal.h"
#include "http/codec/target.h"

namespace spate::http {

// Sets `target`, whose authority and host come from an absolute target, otherwise from Host; empty
// in HTTP/1.0 without either. Or returns the error with which the server closes the connection.
Refusal check_request(const RequestView& request, RequestTarget& target);

}  // namespace spate::http
