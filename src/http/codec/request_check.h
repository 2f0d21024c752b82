// What must hold for a request beside its grammar: one Host (RFC 9112 §3.2), and a target that goes
// with its method.
#pragma once

#include "http/codec/head.h"
#include "http/codec/refusal.h"
#include "http/codec/target.h"

namespace spate::http {

// Sets `target`, whose authority and host are then those that the request is for: of an absolute
// target its own, else Host's; empty where there is none in HTTP/1.0. Or says what to answer before
// the connection is closed.
Refusal check_request(const RequestView& request, RequestTarget& target);

}  // namespace spate::http
