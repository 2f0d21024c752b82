// ServerConnection: one connection in its server's list, of either version of HTTP. It carries
// Wires (wire.h).
#pragma once

#include <cstddef>
#include <system_error>

#include "base/list.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

class ServerConnection : public StreamHandler, public Linked<ServerConnection> {
 public:
  ServerConnection() = default;
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;
  // Closes its Stream gracefully, and ends the exchanges in progress without calling their
  // handlers.
  virtual ~ServerConnection() = default;

  // Called when the server begins to drain: announces it to the client where that needs no
  // response. Calls no user code.
  virtual void on_drain() = 0;
  // Closes it if a request was served and none is in progress. Calls no user code.
  virtual void close_if_idle() = 0;
  // Called at the end of the notice period: no further request is accepted.
  virtual void close_to_requests() = 0;
  // Resets it and reports `error` to its exchanges. Destroys the connection.
  virtual void abort(std::error_code error) = 0;

 protected:
  // Stops waiting for a client that was sent everything and leaves its side open. While draining.
  static void hurry(Stream& stream) {
    constexpr Nanos kPatience{1'000'000'000};
    constexpr std::size_t kSoonSent = 4096;  // The kernel takes this much at once.
    if (stream.queued() <= kSoonSent) stream.set_deadline(kPatience);
  }
};

}  // namespace spate::http
