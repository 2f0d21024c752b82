#include "http/websocket/websocket_group.h"

#include "core/user_code.h"
#include "http/server/server_core.h"
#include "http/websocket/loop_websockets.h"
#include "http/websocket/websocket_state.h"
#include "spate/named_callback.h"

namespace spate::http {

namespace {

constexpr int kTickBits = 20;  // About a millisecond.

std::uint32_t ticks(Nanos time) { return static_cast<std::uint32_t>(time.count() >> kTickBits); }

// Rounded up; at most 24 days, half of the range of a tick number.
std::uint32_t ticks_of(Nanos time) {
  constexpr Nanos kMost{std::int64_t{INT32_MAX} << kTickBits};
  return ticks(std::min(time, kMost) + Nanos{(1 << kTickBits) - 1});
}

}  // namespace

WebSocketGroup::WebSocketGroup(LoopWebSockets& loop_state, const WebSocketOptions& options,
                               ServerCore* host, std::string_view route)
    : UpgradedConnections(host),
      loop_state_(loop_state),
      options_(options),
      route_(route),
      exceptions_end_program_(host == nullptr || host->options().exceptions_end_program),
      timer_(loop_state.loop(), named<Timer, ActiveKind::websocket>([this] { on_timer(); })) {}

// The server needs a Request, but that of the upgrade is over. A spare exchange stands in for it.
void WebSocketGroup::report_exception(const Address& peer) noexcept {
  if (exceptions_end_program_) exception_left("WebSocketHandler");
  if (host() == nullptr) return;
  ExchangePool& pool = host()->pool();
  ExchangeState* state = pool.take();
  if (state == nullptr) return;
  state->stand_in(route_, peer);
  host()->report_exception(state->request());
  pool.give_back(state);
}

bool WebSocketGroup::watch(WebSocketState& state) {
  append(state);
  if (options_.ping_after <= Nanos{0} || sockets_.first() != &state || arm()) return true;
  unwatch(state);
  return false;
}

void WebSocketGroup::append(WebSocketState& state) {
  state.due_ = ticks(loop_state_.loop().now()) + ticks_of(options_.ping_after);
  sockets_.push_back(state);
}

// After a socket has left, the timer may expire without effect. The last socket stops it, so that
// it does not keep the loop alive.
void WebSocketGroup::unwatch(WebSocketState& state) {
  if (!state.is_linked()) return;
  state.unlink();
  if (!sockets_.empty()) return;
  timer_.stop();
  report_closed_all();
}

bool WebSocketGroup::arm() {
  const auto left =
      static_cast<std::int32_t>(sockets_.first()->due_ - ticks(loop_state_.loop().now()));
  return timer_.start(Nanos{std::int64_t{left} << kTickBits});
}

void WebSocketGroup::on_timer() {
  const std::uint32_t now = ticks(loop_state_.loop().now());
  while (!sockets_.empty() && static_cast<std::int32_t>(sockets_.first()->due_ - now) <= 0) {
    WebSocketState& state = *sockets_.pop_front();
    append(state);
    state.on_silence();
  }
  if (!sockets_.empty()) arm();
}

void WebSocketGroup::say_goodbye() {
  sockets_.for_each([](WebSocketState& each) { each.close(CloseCode::going_away, {}); });
}

void WebSocketGroup::end_one(std::error_code error) { sockets_.first()->end(error); }

}  // namespace spate::http
