#include "http/websocket/loop_websockets.h"

#include <new>

#include "http/websocket/websocket_group.h"
#include "sys/random.h"

namespace spate::http {

LoopWebSockets::~LoopWebSockets() { WebSocketCall::detach(innermost_); }

void LoopWebSockets::on_loop_end() {
  for (WebSocketGroup* group = groups_; group != nullptr; group = group->next_)
    group->timer_.stop();
}

std::optional<Mask> LoopWebSockets::random_mask() {
  if (random_left_ == 0) {
    if (sys::random_bytes(std::as_writable_bytes(std::span(random_))) < 0) return {};
    random_left_ = random_.size();
  }
  return random_[--random_left_];
}

// Programs have few distinct options. A program with options per user should not pay for a long
// search.
WebSocketGroup* LoopWebSockets::find_group(const WebSocketOptions& options, ServerCore* host,
                                           std::string_view route) const {
  int left = 8;
  for (WebSocketGroup* each = groups_; each != nullptr && left-- > 0; each = each->next_) {
    if (each->host() == host && each->route() == route && each->options() == options) return each;
  }
  return nullptr;
}

WebSocketGroup* LoopWebSockets::join_group(const WebSocketOptions& options, ServerCore* host,
                                           std::string_view route) {
  WebSocketGroup* group = find_group(options, host, route);
  if (group == nullptr) {
    group = new (std::nothrow) WebSocketGroup(*this, options, host, route);
    if (group == nullptr) return nullptr;
    group->next_ = std::exchange(groups_, group);
  }
  enter_group(*group);
  return group;
}

void LoopWebSockets::enter_group(WebSocketGroup& group) {
  ++group.members_;
  enter();
}

void LoopWebSockets::leave_group(WebSocketGroup& group) {
  if (--group.members_ == 0) {
    WebSocketGroup** place = &groups_;
    while (*place != &group) place = &(*place)->next_;
    *place = group.next_;
    delete &group;
  }
  leave();
}

void LoopWebSockets::forget(const WebSocketState& state, WebSocketGroup& group) {
  WebSocketCall::for_each(innermost_, [&](WebSocketCall& call) {
    if (call.state_ != &state) return;
    call.state_ = nullptr;
    call.group_ = &group;
    enter_group(group);
  });
}

// The callback may destroy the WebSocket, or the server.
void WebSocketCall::on_exception() noexcept {
  const Address peer = is_gone() ? Address() : state_->stream().peer_address();
  (is_gone() ? *group_ : state_->group()).report_exception(peer);
  if (!is_gone()) state_->fail_by_exception();
}

}  // namespace spate::http
