// How an end detects a peer that does not respond while nothing is in flight.
//
// A probe that would be answered has no effect, so it is not simulated: an end begins to probe when
// its peer becomes unreachable, and stops when it is reachable again.
#include <algorithm>
#include <cerrno>

#include "sim/net/network.h"
#include "sim/net/tcp.h"

namespace spate::sim {

void Endpoint::set_timeouts(const TcpTimeouts& timeouts) {
  timeouts_ = timeouts;
  watch_stall();
  suspect_peer();
}

void Endpoint::suspect_peer() {
  if (is_keep_alive_due_ || !timeouts_.keeps_alive || state_ != State::open ||
      network_.reaches(connection_, side_))
    return;
  const Nanos now = network_.kernel().now();
  // Earlier probes were answered.
  received_at_ += (now - received_at_) / timeouts_.idle * timeouts_.idle;
  is_keep_alive_due_ = true;
  probes_ = 0;
  schedule_keep_alive(received_at_ + timeouts_.idle);
}

void Endpoint::schedule_keep_alive(Nanos time) {
  network_.kernel().at(time, [&network = network_, id = connection_.id, side = side_] {
    if (Connection* connection = network.find(id)) connection->end(side).send_keep_alive();
  });
}

// A peer that has crashed and is up again responds with a reset.
void Endpoint::send_keep_alive() {
  is_keep_alive_due_ = false;
  if (state_ != State::open || !timeouts_.keeps_alive) return;
  if (network_.reaches(connection_, side_)) return note_received(network_.kernel().now());
  if (silence == 0 && has_timed_out()) return on_silence();
  if (silence == 0) ++probes_;
  is_keep_alive_due_ = true;
  network_.probe(connection_, side_);
  schedule_keep_alive(network_.kernel().now() + timeouts_.interval);
}

bool Endpoint::has_timed_out() const {
  const Nanos quiet_for = network_.kernel().now() - received_at_;
  if (timeouts_.user_timeout != Nanos{0}) return probes_ > 0 && quiet_for >= timeouts_.user_timeout;
  return probes_ >= timeouts_.count;
}

// With a user timeout, an end does not wait longer for a window, even if the peer still responds.
void Endpoint::watch_stall() {
  const Nanos now = network_.kernel().now();
  if (!is_stalled() || state_ != State::open) {
    stalled_since_ = kForever;
    return;
  }
  if (stalled_since_ == kForever) stalled_since_ = now;
  if (timeouts_.user_timeout == Nanos{0}) return;
  const Nanos since = stalled_since_;
  network_.kernel().at(since + timeouts_.user_timeout, [&network = network_, id = connection_.id,
                                                        side = side_, since] {
    Connection* connection = network.find(id);
    if (connection == nullptr) return;
    Endpoint& end = connection->end(side);
    const Nanos limit = end.timeouts_.user_timeout;
    const bool is_due = limit != Nanos{0} && network.kernel().now() >= since + limit;
    if (end.is_stalled() && end.stalled_since_ == since && is_due) end.on_silence();
  });
}

}  // namespace spate::sim
