// Conversion between the fields and requests of spate and the dicts of ASGI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server.h"
#include "spate/http/fields.h"
#include "spate/http/request.h"

namespace spate_server {

// Returns the scope of a request, or of a WebSocket.
PyObject* make_scope(Server* server, const spate::http::Request& request, bool is_websocket);

// Returns the environ of a request for WSGI, without its body.
PyObject* make_environ(Server* server, const spate::http::Request& request);

// Returns the path without its escapes.
std::string decoded(std::string_view path);

// Returns scope["client"] of the peer.
PyObject* client_of(Server* server, const spate::Address& peer);

// Returns whether the request has X-Forwarded headers, and the server applies them.
bool is_forwarded(Server* server, const spate::http::Request& request);

// Returns whether the request asks for a WebSocket.
bool wants_websocket(const spate::http::Request& request);

// Adds the headers of a message to the fields. Leaves out those that the server sets;
// Content-Length goes to `size`.
bool read_headers(PyObject* headers, spate::http::Fields& fields,
                  std::optional<std::uint64_t>& size);

// Returns the address as (host, port), (path, None), or None.
PyObject* pair_of(const spate::Address& address);

}  // namespace spate_server
