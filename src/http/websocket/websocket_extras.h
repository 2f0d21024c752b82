// The rarely needed state of a WebSocket: an incomplete message, a pong that has to wait, the
// peer's close frame, topics, and the call by which it connects.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "http/codec/websocket_frame.h"
#include "http/websocket/websocket_connecting.h"
#include "http/websocket/websocket_state.h"

namespace spate::http {

// The payload of a control frame.
struct WebSocketState::ControlText {
  void set(Bytes bytes) {
    size = static_cast<std::uint8_t>(bytes.size());
    if (size != 0) std::memcpy(text, bytes.data(), size);
  }
  Bytes bytes() const { return {text, size}; }

  std::uint8_t size = 0;
  std::byte text[kMostControl];
};

struct WebSocketState::Extras {
  bool is_empty() const {
    return reader == nullptr && pong == nullptr && reason == nullptr && connecting == nullptr &&
           subscriptions == nullptr;
  }

  std::unique_ptr<WebSocketReader> reader;
  std::unique_ptr<ControlText> pong;
  std::unique_ptr<ControlText> reason;
  std::unique_ptr<WebSocketConnecting> connecting;
  Subscription* subscriptions = nullptr;
};

}  // namespace spate::http
