// WebSocketGroup: the WebSockets of a loop with the same options and server, or client ones.
// Detects those that are silent for too long.
//
// Open sockets are in a list ordered by their next check. Each check is `ping_after` later, so a
// checked socket moves to the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/server/upgraded_connections.h"
#include "spate/http/websocket.h"
#include "spate/timer.h"

namespace spate::http {

class LoopWebSockets;

class WebSocketGroup final : public UpgradedConnections {
 public:
  // `host` is the server; nullptr for clients.
  WebSocketGroup(LoopWebSockets& loop_state, const WebSocketOptions& options, ServerCore* host,
                 std::string_view route);

  LoopWebSockets& loop_state() const { return loop_state_; }
  const WebSocketOptions& options() const { return options_; }
  const std::string& route() const { return route_; }
  // Called inside a catch block, for an exception that left the handler of a member.
  void report_exception(const Address& peer) noexcept;
  // Adds an open socket. False when memory runs out.
  bool watch(WebSocketState& state);
  // Removes a closed socket.
  void unwatch(WebSocketState& state);

  // ---- UpgradedConnections

  bool are_gone() const override { return sockets_.empty(); }
  void say_goodbye() override;
  void end_one(std::error_code error) override;

 private:
  friend class LoopWebSockets;
  void on_timer();
  void append(WebSocketState& state);
  bool arm();

  LoopWebSockets& loop_state_;
  const WebSocketOptions options_;
  const std::string route_;
  const bool exceptions_end_program_;
  std::size_t members_ = 0;
  List<WebSocketState> sockets_;  // In the order in which they are due.
  Timer timer_;
  WebSocketGroup* next_ = nullptr;
};

}  // namespace spate::http
