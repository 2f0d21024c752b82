#include "spate/net/stream_info.h"

#include <chrono>

#include "core/ownership.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "sys/tcp_info.h"

namespace spate {

namespace {

constexpr std::string_view kStateNames[kStreamStates] = {
    "connecting", "open", "peer ended", "ending", "ended", "closing", "failed", "closed"};

}  // namespace

std::string_view name_of(StreamState state) { return kStateNames[static_cast<std::size_t>(state)]; }

// The ticks wrap around after about a century.
Nanos Connection::age() const {
  return loop_state().is_alive() ? Nanos{std::int64_t{age_now() - node_.head.extra} << kAgeBits}
                                 : Nanos{0};
}

Nanos Connection::stalled() const {
  return has_queue() && !has(kSendRests) && loop_state().is_alive()
             ? Nanos{now() - busy_->write_timeout.since()}
             : Nanos{0};
}

StreamState Connection::public_state() const {
  if (!is_open()) return StreamState::closed;
  if (!transport_->is_connected()) return StreamState::connecting;
  switch (life_.state()) {
    case State::open:
      return has(kPeerEnded) ? StreamState::peer_ended : StreamState::open;
    case State::ending:
      return StreamState::ending;
    case State::ended:
      return StreamState::ended;
    case State::closing:
    case State::lingering:
      return StreamState::closing;
    case State::broken:
    case State::failed:
      return StreamState::failed;
    case State::closed:
    case State::over:
      return StreamState::closed;
  }
  return StreamState::closed;
}

StreamInfo Connection::info() const {
  return {.state = public_state(),
          .is_started = handler() != nullptr,
          .is_paused = is_paused(),
          .is_full = is_full(),
          .has_owner = !has(kAbandoned),
          .queued = queued(),
          .unread = unread().size(),
          .stalled = stalled(),
          .age = age(),
          .id = this};
}

StreamInfo stream_info(const Stream& stream) {
  const Connection* connection = Connection::of(stream);
  return connection == nullptr ? StreamInfo() : connection->info();
}

std::optional<TcpInfo> tcp_info(const Stream& stream) {
  sys::TcpInfo known;
  if (sys::tcp_info(stream.fd(), known) < 0) return std::nullopt;
  return TcpInfo{.since_received = std::chrono::milliseconds(known.since_received_ms),
                 .since_sent = std::chrono::milliseconds(known.since_sent_ms),
                 .received = known.bytes_received,
                 .sent = known.bytes_acknowledged,
                 .unsent = known.unsent_bytes,
                 .round_trip = std::chrono::microseconds(known.round_trip_us),
                 .retransmitted = known.total_retransmitted};
}

void show_streams(Loop& loop, ShowStream show, void* context) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  LoopStreams* loop_state = LoopStreams::of(loop);
  if (loop_state == nullptr) return;
  loop_state->show_all([=](Connection& connection) {
    Stream stream = Connection::stream_of(&connection);
    show(context, stream);
    Connection::take_back(stream);
  });
}

}  // namespace spate
