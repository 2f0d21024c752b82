#include "spate/http/topic.h"

#include <algorithm>
#include <new>
#include <span>

#include "http/websocket/subscription.h"
#include "http/websocket/websocket_state.h"

namespace spate::http {

// ---- Subscription

Subscription::Subscription(Topic& topic, WebSocketState& socket)
    : topic_(topic), socket_(socket), next_(topic.first_), next_of_socket_(socket.subscriptions()) {
  if (next_ != nullptr) next_->previous_ = this;
  if (next_of_socket_ != nullptr) next_of_socket_->previous_of_socket_ = this;
  topic.first_ = this;
  socket.subscriptions() = this;
  ++topic.size_;
}

Subscription::~Subscription() {
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ == nullptr ? topic_.first_ : previous_->next_) = next_;
  if (next_of_socket_ != nullptr) next_of_socket_->previous_of_socket_ = previous_of_socket_;
  (previous_of_socket_ == nullptr ? socket_.subscriptions()
                                  : previous_of_socket_->next_of_socket_) = next_of_socket_;
  --topic_.size_;
}

// Searches the socket's list: sockets have few topics, while topics have many sockets.
Subscription* Subscription::find(const Topic& topic, const WebSocketState& socket) {
  Subscription* each = socket.first_subscription();
  while (each != nullptr && &each->topic_ != &topic) each = each->next_of_socket_;
  return each;
}

// ---- Topic

Topic::~Topic() {
  while (first_ != nullptr) delete first_;
}

bool Topic::subscribe(const WebSocket& socket) {
  WebSocketState* state = WebSocketState::of(socket);
  if (state == nullptr || !state->is_open() || !state->has_extras()) return false;
  if (Subscription::find(*this, *state) != nullptr) return true;
  return new (std::nothrow) Subscription(*this, *state) != nullptr;
}

bool Topic::unsubscribe(const WebSocket& socket) {
  const WebSocketState* state = WebSocketState::of(socket);
  Subscription* found = state == nullptr ? nullptr : Subscription::find(*this, *state);
  delete found;
  return found != nullptr;
}

bool Topic::has(const WebSocket& socket) const {
  const WebSocketState* state = WebSocketState::of(socket);
  return state != nullptr && Subscription::find(*this, *state) != nullptr;
}

std::size_t Topic::publish(MessageKind kind, Bytes bytes) { return send(kind, bytes, nullptr); }

std::size_t Topic::publish_to_others(const WebSocket& sender, MessageKind kind, Bytes bytes) {
  return send(kind, bytes, WebSocketState::of(sender));
}

// The frames of a client are masked individually, so they cannot be shared.
std::size_t Topic::send(MessageKind kind, Bytes bytes, const WebSocketState* except) {
  std::byte head[kMostFrameHead];
  const std::size_t head_size =
      write_frame_head({.opcode = opcode_of(kind), .size = bytes.size()}, head);
  Buffer frame;
  const std::span<std::byte> room = frame.reserve(head_size + bytes.size());
  if (room.empty()) return 0;
  std::ranges::copy(Bytes(head, head_size), room.begin());
  std::ranges::copy(bytes, room.subspan(head_size).begin());
  frame.commit(head_size + bytes.size());
  std::size_t count = 0;
  for (Subscription* each = first_; each != nullptr; each = each->next()) {
    WebSocketState& socket = each->socket();
    if (&socket == except) continue;
    const bool is_sent =
        socket.takes_shared() ? socket.send_shared(frame) : socket.send(kind, bytes);
    count += is_sent ? 1 : 0;
  }
  return count;
}

}  // namespace spate::http
