// Socket: a WebSocket, from its request on. Its methods receive() and send() are those of ASGI;
// finish() and fail() are called when the application has returned or has raised an exception.
#pragma once

#include "server.h"
#include "spate/http/exchange.h"

namespace spate_server {

class Line;

struct Socket {
  PyObject_HEAD
  Server* server;
  Line* line;
  PyObject* receiving;  // The future of receive().
  PyObject* sending;    // That of send().
  PyObject* start;      // The message websocket.http.response.start.
};

extern PyType_Spec socket_spec;

// Makes the Socket of an Exchange, and starts its task. False with an exception.
bool start_socket(Server* server, spate::http::Exchange exchange);
void close_socket(PyObject* self);  // As close_cycle().

}  // namespace spate_server
