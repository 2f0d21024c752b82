// Subscription: connects a WebSocket with a Topic. It is in the lists of both, and is deleted by
// the one that is destroyed first.
#pragma once

#include "spate/http/topic.h"

namespace spate::http {

class WebSocketState;

class Subscription {
 public:
  // `socket` must have has_extras().
  Subscription(Topic& topic, WebSocketState& socket);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  static Subscription* find(const Topic& topic, const WebSocketState& socket);
  WebSocketState& socket() const { return socket_; }
  Subscription* next() const { return next_; }

 private:
  Topic& topic_;
  WebSocketState& socket_;
  Subscription* next_;  // In the topic's list.
  Subscription* previous_ = nullptr;
  Subscription* next_of_socket_;
  Subscription* previous_of_socket_ = nullptr;
};

}  // namespace spate::http
