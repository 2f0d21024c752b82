// Topic: WebSockets that are told the same.
//
//   spate::http::Topic news;
//   news.subscribe(socket);
//   news.publish("hello");
//
// A message is put into its frame once, whatever their number, and what waits for slow readers is
// shared by their queues. It is not compressed. What happens to a reader that is too slow is up to
// its WebSocketOptions::limits.
//
// Ownership: the Topic is the user's. A WebSocket that is closed or destroyed leaves its topics by
// itself, and a Topic that is destroyed is left by all.
// Threads: the loop's thread only. On Workers, each has a Topic of its own; publish by
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

class SPATE_EXPORT Topic {
 public:
  Topic() = default;
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;
  ~Topic();

  // False: it is not open, or memory runs out. Once is enough.
  bool subscribe(const WebSocket& socket);
  // False if it was none of them.
  bool unsubscribe(const WebSocket& socket);
  bool has(const WebSocket& socket) const;
  std::size_t size() const { return size_; }

  // Returns to how many it was sent: not to those for whom WebSocket::send() would return false.
  std::size_t publish(MessageKind kind, Bytes bytes);
  std::size_t publish(std::string_view text) { return publish(MessageKind::text, bytes_of(text)); }

 private:
  friend class Subscription;
  Subscription* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate::http
