// WebSocketGroup: the WebSockets of a loop that were given the same options by the same server, or
// are clients; and which of them have been silent for too long.
//
// Those that are open stand in the order in which they are to be looked at: each for `ping_after`,
// and then at the end again.
#pragma once

#include <cstdint>

#include "http/server/guests.h"
#include "spate/http/websocket.h"
#include "spate/timer.h"

namespace spate::http {

class WebSocketHub;

class WebSocketGroup final : public Guests {
 public:
  // `host` is the server, or nullptr.
  WebSocketGroup(WebSocketHub& hub, const WebSocketOptions& options, ServerCore* host);

  WebSocketHub& hub() const { return hub_; }
  const WebSocketOptions& options() const { return options_; }
  // One that is open is to be looked at. False when memory runs out.
  bool watch(WebSocketState& state);
  // It has ended.
  void unwatch(WebSocketState& state);

  // ---- Guests

  bool are_gone() const override { return first_ == nullptr; }
  void say_goodbye() override;
  void end_one(std::error_code error) override;

 private:
  friend class WebSocketHub;
  void on_timer();
  void append(WebSocketState& state);
  void remove(WebSocketState& state);
  bool arm();

  WebSocketHub& hub_;
  const WebSocketOptions options_;
  std::size_t members_ = 0;
  WebSocketState* first_ = nullptr;
  WebSocketState* last_ = nullptr;
  Timer timer_;
  WebSocketGroup* next_ = nullptr;
};

}  // namespace spate::http
