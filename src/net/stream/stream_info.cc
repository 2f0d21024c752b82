#include "spate/net/stream_info.h"

#include <chrono>

#include "core/ownership.h"
#include "net/stream/connection.h"
#include "net/stream/hub.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "sys/tcp_info.h"

namespace spate {

namespace {

constexpr std::string_view kStateNames[kStreamStates] = {
    "connecting", "open", "peer ended", "ending", "ended", "closing", "failed", "closed"};

}  // namespace

std::string_view name_of(StreamState state) { return kStateNames[static_cast<std::size_t>(state)]; }

// The ticks wrap after a century or so.
Nanos Connection::age() const {
  return hub().is_alive() ? Nanos{std::int64_t{age_now() - node_.head.extra} << kAgeBits}
                          : Nanos{0};
}

StreamState Connection::public_state() const {
  if (!is_open()) return StreamState::closed;
  if (!transport_->is_connected()) return StreamState::connecting;
  switch (state_) {
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
  const ::tcp_info& first = known.first;
  return TcpInfo{.since_received = std::chrono::milliseconds(first.tcpi_last_data_recv),
                 .since_sent = std::chrono::milliseconds(first.tcpi_last_data_sent),
                 .received = known.bytes_received,
                 .sent = known.bytes_acknowledged,
                 .unsent = known.unsent_bytes,
                 .round_trip = std::chrono::microseconds(first.tcpi_rtt),
                 .retransmitted = first.tcpi_total_retrans};
}

void show_streams(Loop& loop, ShowStream show, void* context) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  Hub* hub = Hub::of(loop);
  if (hub == nullptr) return;
  hub->show_all([=](Connection& connection) {
    Stream stream = Connection::stream_of(&connection);
    show(context, stream);
    Connection::take_back(stream);
  });
}

}  // namespace spate
