#include "http/websocket/websocket_hub.h"

#include <new>

#include "http/websocket/websocket_group.h"
#include "sys/random.h"

namespace spate::http {

WebSocketHub::~WebSocketHub() = default;

void WebSocketHub::on_loop_end() {
  for (WebSocketGroup* group = groups_; group != nullptr; group = group->next_)
    group->timer_.stop();
}

std::optional<Mask> WebSocketHub::random_mask() {
  if (random_left_ == 0) {
    if (sys::random_bytes(std::as_writable_bytes(std::span(random_))) < 0) return {};
    random_left_ = random_.size();
  }
  return random_[--random_left_];
}

// Programs have a few kinds of WebSockets; one that has options for each user is not to pay for
// all.
WebSocketGroup* WebSocketHub::find_group(const WebSocketOptions& options, ServerCore* host) const {
  int left = 8;
  for (WebSocketGroup* each = groups_; each != nullptr && left-- > 0; each = each->next_) {
    if (each->host() == host && each->options() == options) return each;
  }
  return nullptr;
}

WebSocketGroup* WebSocketHub::join_group(const WebSocketOptions& options, ServerCore* host) {
  WebSocketGroup* group = find_group(options, host);
  if (group == nullptr) {
    group = new (std::nothrow) WebSocketGroup(*this, options, host);
    if (group == nullptr) return nullptr;
    group->next_ = std::exchange(groups_, group);
  }
  ++group->members_;
  enter();
  return group;
}

void WebSocketHub::leave_group(WebSocketGroup& group) {
  if (--group.members_ == 0) {
    WebSocketGroup** place = &groups_;
    while (*place != &group) place = &(*place)->next_;
    *place = group.next_;
    delete &group;
  }
  leave();
}

void WebSocketHub::forget(const WebSocketState& state) {
  for (WebSocketCall* call = innermost_; call != nullptr; call = call->outer_) {
    if (call->state_ == &state) call->state_ = nullptr;
  }
}

}  // namespace spate::http
