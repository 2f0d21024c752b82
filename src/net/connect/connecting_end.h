// ConnectingEnd: the transport of a Stream while it is connecting. It sends and receives nothing;
// when there is a socket, it moves the connection to the socket transport, and deletes itself.
#pragma once

#include "net/connect/connect_socket.h"
#include "net/stream/transport.h"
#include "spate/timer.h"

namespace spate {

class ConnectingEnd final : public Transport {
 public:
  // nullptr when memory runs out.
  static ConnectingEnd* make(Hub& hub);

  Connection& connection() { return *connection_; }
  // For connect_socket().
  OnSocket on_socket();
  void keep(Connecting attempt) { attempt_ = std::move(attempt); }

  bool is_connected() const override { return false; }
  long receive(Connection& connection, std::span<std::byte> room) override;
  long send(Connection& connection, std::span<const Bytes> pieces) override;
  bool want(Connection&, Events) override { return true; }
  bool shut_down(Connection&) override { return is_ended_ = true; }
  void close(Connection& connection, bool reset) override;
  void leave(Connection&) override { delete this; }

 private:
  explicit ConnectingEnd(Hub& hub);
  ~ConnectingEnd() override = default;
  void settle();

  Connection* connection_ = nullptr;
  Connecting attempt_;
  Result<sys::Descriptor> socket_;
  Timer later_;
  bool is_ended_ = false;  // end() was called before the connection was established.
};

}  // namespace spate
