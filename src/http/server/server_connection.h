// ServerConnection: one connection of a server, in its server's list, whatever version of HTTP it
// speaks. What it carries are Wires (wire.h).
#pragma once

#include <system_error>

#include "spate/net/stream.h"

namespace spate::http {

class ServerConnection : public StreamHandler {
 public:
  ServerConnection() = default;
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;
  // Closes its Stream gracefully; exchanges in progress are over, and nobody is told.
  virtual ~ServerConnection() = default;

  // In its server's list.
  ServerConnection* next = nullptr;
  ServerConnection* previous = nullptr;

  // The server is draining: the client is told, where that can be done without an answer. Calls
  // nobody.
  virtual void on_drain() = 0;
  // It has been told for long enough: no further request is taken.
  virtual void close_to_requests() = 0;
  // Resets it. Its exchanges are told; the connection is gone then.
  virtual void abort(std::error_code error) = 0;
};

}  // namespace spate::http
