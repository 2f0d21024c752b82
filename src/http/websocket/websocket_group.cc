#include "http/websocket/websocket_group.h"

#include "http/websocket/websocket_hub.h"
#include "http/websocket/websocket_state.h"

namespace spate::http {

namespace {

constexpr int kTickBits = 20;  // About a millisecond.

std::uint32_t ticks(Nanos time) { return static_cast<std::uint32_t>(time.count() >> kTickBits); }

// Rounded up; at most 24 days, half of what a tick's number can say.
std::uint32_t ticks_of(Nanos time) {
  constexpr Nanos kMost{std::int64_t{INT32_MAX} << kTickBits};
  return ticks(std::min(time, kMost) + Nanos{(1 << kTickBits) - 1});
}

}  // namespace

WebSocketGroup::WebSocketGroup(WebSocketHub& hub, const WebSocketOptions& options, ServerCore* host)
    : Guests(host), hub_(hub), options_(options), timer_(hub.loop(), [this] { on_timer(); }) {}

bool WebSocketGroup::watch(WebSocketState& state) {
  append(state);
  if (options_.ping_after <= Nanos{0} || first_ != &state || arm()) return true;
  unwatch(state);
  return false;
}

void WebSocketGroup::append(WebSocketState& state) {
  state.due_ = ticks(hub_.loop().now()) + ticks_of(options_.ping_after);
  state.is_watched_ = true;
  state.next_ = nullptr;
  state.previous_ = last_;
  (last_ == nullptr ? first_ : last_->next_) = &state;
  last_ = &state;
}

// The timer may come in vain for one that has left, but the last takes it along: the loop ends.
void WebSocketGroup::unwatch(WebSocketState& state) {
  if (!state.is_watched_) return;
  remove(state);
  if (first_ != nullptr) return;
  timer_.stop();
  tell_gone();
}

void WebSocketGroup::remove(WebSocketState& state) {
  state.is_watched_ = false;
  (state.previous_ == nullptr ? first_ : state.previous_->next_) = state.next_;
  (state.next_ == nullptr ? last_ : state.next_->previous_) = state.previous_;
}

bool WebSocketGroup::arm() {
  const auto left = static_cast<std::int32_t>(first_->due_ - ticks(hub_.loop().now()));
  return timer_.start(Nanos{std::int64_t{left} << kTickBits});
}

void WebSocketGroup::on_timer() {
  const std::uint32_t now = ticks(hub_.loop().now());
  while (first_ != nullptr && static_cast<std::int32_t>(first_->due_ - now) <= 0) {
    WebSocketState& state = *first_;
    remove(state);
    append(state);
    state.on_silence();
  }
  if (first_ != nullptr) arm();
}

void WebSocketGroup::say_goodbye() {
  for (WebSocketState* each = first_; each != nullptr; each = each->next_)
    each->close(CloseCode::going_away, {});
}

void WebSocketGroup::end_one(std::error_code error) { first_->end(error); }

}  // namespace spate::http
