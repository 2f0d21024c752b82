// ConnectingEnd: the transport of a Stream while it is connecting. It sends and receives nothing.
// When another Stream is connected, it exchanges the transports of the two, and is destroyed with
// the other one.
#pragma once

#include <string_view>

#include "net/stream/transport.h"
#include "spate/net/connect.h"
#include "spate/timer.h"

namespace spate {

class ConnectingEnd final : public Transport {
 public:
  // Makes `stream` a connecting one with `handler`. nullptr when memory runs out.
  static ConnectingEnd* begin(Stream& stream, Loop& loop, StreamHandler& handler);

  // Stores the attempt, which calls on_result() from the loop.
  void keep(Connecting attempt) { attempt_ = std::move(attempt); }
  void on_result(Result<Stream> made);

  bool is_connected() const override { return false; }
  bool want(Connection&, Events) override { return true; }
  bool shut_down(Connection&) override { return is_ended_ = true; }
  void close(Connection& connection, bool reset) override;
  void leave(Connection&) override { delete this; }

 private:
  explicit ConnectingEnd(LoopStreams& loop_state);
  ~ConnectingEnd() override = default;
  void settle();

  Connection* connection_ = nullptr;
  Connecting attempt_;
  Result<Stream> made_;
  Timer later_;
  bool is_ended_ = false;  // end() was called before the connection was established.
};

}  // namespace spate
