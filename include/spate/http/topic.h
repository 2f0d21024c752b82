// Topic: publishes messages to many WebSockets.
//
//   spate::http::Topic news;
//   news.subscribe(socket);
//   news.publish("hello");
//
// A message is framed once for all subscribers, and the queues of slow readers share its bytes. It
// is not compressed. WebSocketOptions::limits decides about readers that are too slow.
//
// Ownership: the Topic is the user's. A WebSocket that is closed or destroyed is unsubscribed
// automatically, and a destroyed Topic unsubscribes all.
// Threads: the loop's thread only. On Workers, each worker needs its own Topic; publish by
// Workers::post_to_all().
// Callbacks: none.
#pragma once

#include <cstddef>
#include <string_view>

#include "spate/export.h"
#include "spate/http/websocket.h"
#include "spate/net/bytes.h"

namespace spate::http {

class Subscription;
class WebSocketState;

class SPATE_EXPORT Topic {
 public:
  Topic() = default;
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;
  ~Topic();

  // Adds a socket. False if it is not open, or when memory runs out. Adding it again has no effect.
  bool subscribe(const WebSocket& socket);
  // Removes a socket. False if it was not subscribed.
  bool unsubscribe(const WebSocket& socket);
  bool has(const WebSocket& socket) const;
  std::size_t size() const { return size_; }

  // Sends a message, except to sockets for which WebSocket::send() would return false. Returns the
  // number of sockets to which it was sent.
  std::size_t publish(MessageKind kind, Bytes bytes);
  std::size_t publish(std::string_view text) { return publish(MessageKind::text, bytes_of(text)); }
  // As above, but not to `sender`, which need not be subscribed.
  std::size_t publish_to_others(const WebSocket& sender, MessageKind kind, Bytes bytes);
  std::size_t publish_to_others(const WebSocket& sender, std::string_view text) {
    return publish_to_others(sender, MessageKind::text, bytes_of(text));
  }

 private:
  std::size_t send(MessageKind kind, Bytes bytes, const WebSocketState* except);

  friend class Subscription;
  Subscription* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate::http
