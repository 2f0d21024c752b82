// WebSocketGroup: the WebSockets of a loop that were given the same options, and which of them have
// been silent for too long.
//
// They stand in the order in which they are to be looked at: each for `ping_after`, and then at the
// end again.
#pragma once

#include <cstdint>

#include "spate/http/websocket.h"
#include "spate/timer.h"

namespace spate::http {

class WebSocketHub;

class WebSocketGroup {
 public:
  WebSocketGroup(WebSocketHub& hub, const WebSocketOptions& options);

  WebSocketHub& hub() const { return hub_; }
  const WebSocketOptions& options() const { return options_; }
  // One that is open is to be looked at. False when memory runs out.
  bool watch(WebSocketState& state);
  void unwatch(WebSocketState& state);

 private:
  friend class WebSocketHub;
  void on_timer();
  void append(WebSocketState& state);
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
