// How an end finds out that the other one does not answer any more, though nothing is under way.
//
// A probe that would be answered changes nothing, so none is sent: an end begins to probe when its
// peer cannot be reached, and stops when it can be again.
#include <algorithm>
#include <cerrno>

#include "sim/net/network.h"
#include "sim/net/tcp.h"

namespace spate::sim {

void Endpoint::set_patience(const Patience& patience) {
  patience_ = patience;
  watch_stall();
  doubt_peer();
}

void Endpoint::doubt_peer() {
  if (is_asking_ || !patience_.keeps_alive || state_ != State::open ||
      network_.reaches(connection_, side_))
    return;
  const Nanos now = network_.kernel().now();
  // Probes before were answered.
  heard_at_ += (now - heard_at_) / patience_.idle * patience_.idle;
  is_asking_ = true;
  probes_ = 0;
  ask_at(heard_at_ + patience_.idle);
}

void Endpoint::ask_at(Nanos time) {
  network_.kernel().at(time, [&network = network_, id = connection_.id, side = side_] {
    if (Connection* connection = network.find(id)) connection->end(side).ask_peer();
  });
}

// A peer that has crashed and is up again answers by a reset.
void Endpoint::ask_peer() {
  is_asking_ = false;
  if (state_ != State::open || !patience_.keeps_alive) return;
  if (network_.reaches(connection_, side_)) return on_sign_of_life(network_.kernel().now());
  if (silence == 0 && has_lost_patience()) return on_silence();
  if (silence == 0) ++probes_;
  is_asking_ = true;
  network_.probe(connection_, side_);
  ask_at(network_.kernel().now() + patience_.interval);
}

bool Endpoint::has_lost_patience() const {
  const Nanos unheard = network_.kernel().now() - heard_at_;
  if (patience_.user_timeout != Nanos{0}) return probes_ > 0 && unheard >= patience_.user_timeout;
  return probes_ >= patience_.count;
}

// Who has set a time for it does not wait longer for room, even if the peer still answers.
void Endpoint::watch_stall() {
  const Nanos now = network_.kernel().now();
  if (!is_stalled() || state_ != State::open) {
    stalled_since_ = kForever;
    return;
  }
  if (stalled_since_ == kForever) stalled_since_ = now;
  if (patience_.user_timeout == Nanos{0}) return;
  const Nanos since = stalled_since_;
  network_.kernel().at(since + patience_.user_timeout, [&network = network_, id = connection_.id,
                                                        side = side_, since] {
    Connection* connection = network.find(id);
    if (connection == nullptr) return;
    Endpoint& end = connection->end(side);
    const Nanos limit = end.patience_.user_timeout;
    const bool is_due = limit != Nanos{0} && network.kernel().now() >= since + limit;
    if (end.is_stalled() && end.stalled_since_ == since && is_due) end.on_silence();
  });
}

}  // namespace spate::sim
