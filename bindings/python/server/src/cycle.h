// Cycle: a request and its response. Its methods receive() and send() are those of ASGI; finish()
// and fail() are called when the application has returned or has raised an exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server.h"
#include "spate/http/exchange.h"

namespace spate_server {

class Body;

struct Cycle {
  PyObject_HEAD
  Server* server;
  Body* body;
  PyObject* receiving;  // The future of receive().
  PyObject* sending;    // That of send().
  PyObject* start;      // The message http.response.start, until the body begins.
};

extern PyType_Spec cycle_spec;

// Makes the Cycle of an Exchange, and starts its task. False with an exception.
bool start_cycle(Server* server, spate::http::Exchange exchange);
// Ends the wait of a Cycle for events; called for those of Engine::watched when the server closes.
void close_cycle(PyObject* self);

}  // namespace spate_server
