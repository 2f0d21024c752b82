// Subscription: that a WebSocket is told what a Topic publishes. It stands in the lists of both,
// and is deleted by whichever goes first.
#pragma once

#include "spate/http/topic.h"

namespace spate::http {

class WebSocketState;

class Subscription {
 public:
  // Of one that has_extras().
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
  Subscription* next_;  // Of the topic.
  Subscription* previous_ = nullptr;
  Subscription* next_of_socket_;
  Subscription* previous_of_socket_ = nullptr;
};

}  // namespace spate::http
