#include "sim/net/tcp.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/kernel/file.h"
#include "sim/net/network.h"

namespace spate::sim {

SegmentHeader::SegmentHeader(std::string_view text)
    : kind(SegmentKind::data), hash(hash_of(text)), size(text.size()), bytes(text) {}

Endpoint::Endpoint(Network& network, Connection& connection, Side side, int host,
                   SocketAddress local)
    : network_(network),
      connection_(connection),
      side_(side),
      host_(host),
      local_(local),
      outgoing_(network.memory, host),
      incoming_(network.memory, host) {}

Endpoint& Endpoint::other(Connection& connection) const { return connection.end(opposite(side_)); }

void Endpoint::changed() {
  if (file_ != nullptr) file_->changed();
}

std::uint32_t Endpoint::ready() const {
  if (state_ == State::connecting) return 0;
  std::uint32_t events = error_ != 0 ? EPOLLERR : 0u;
  if (incoming_.size() != 0 || has_ended_) events |= EPOLLIN;
  if (has_ended_) events |= EPOLLRDHUP;
  if (has_ended_ && (has_shut_down_ || state_ == State::dead)) events |= EPOLLHUP;
  // Linux reports it when a third is free.
  const bool has_room =
      outgoing_.size() + send_buffer_ / 3 <= send_buffer_ && !network_.memory.is_short(host_);
  if (has_room || has_shut_down_ || state_ == State::dead) events |= EPOLLOUT;
  return events;
}

std::size_t Endpoint::send_room() const {
  const std::size_t own = send_buffer_ - std::min(send_buffer_, outgoing_.size());
  return std::min(own, network_.memory.room(host_));
}

long Endpoint::send(std::string_view bytes) {
  if (state_ == State::connecting) return -EAGAIN;
  if (error_ != 0) return -take_error();
  if (has_shut_down_ || state_ == State::dead) return -EPIPE;
  const std::size_t room = send_room();
  if (room == 0 && !bytes.empty()) return -EAGAIN;
  bytes = bytes.substr(0, room);
  outgoing_.append(bytes);
  transmit();
  return static_cast<long>(bytes.size());
}

// After the peer's end, later errors are not reported here.
long Endpoint::receive(std::span<std::byte> room, Peek peek) {
  if (state_ == State::connecting) return -EAGAIN;
  const std::string_view bytes = incoming_.front().substr(0, room.size());
  if (bytes.empty()) {
    if (room.empty() || peer_has_ended_) return 0;
    if (error_ != 0) return -take_error();
    return has_ended_ || state_ == State::dead ? 0 : -EAGAIN;
  }
  std::memcpy(room.data(), bytes.data(), bytes.size());
  const std::size_t count = bytes.size();
  if (peek == Peek::yes) return static_cast<long>(count);
  incoming_.take(count);
  unannounced_ += count;
  announce_window();
  return static_cast<long>(count);
}

// Sends a window update when it is worth a packet, or when the sender may be waiting for it.
void Endpoint::announce_window() {
  const bool is_worth_it = unannounced_ != 0 && (incoming_.size() == 0 || unannounced_ >= kSegment);
  if (state_ != State::open || has_ended_ || !is_worth_it || network_.memory.is_short(host_))
    return;
  network_.send(connection_, side_, SegmentHeader(SegmentKind::window_update),
                [this, count = std::exchange(unannounced_, 0)](Connection& to) {
                  other(to).on_window_update(count);
                });
}

void Endpoint::on_memory() {
  announce_window();
  changed();
}

void Endpoint::shut_down_writing() {
  has_shut_down_ = true;
  transmit();
  changed();
}

void Endpoint::shut_down_reading() {
  has_ended_ = true;
  changed();
}

// As in Linux, closing with unread input sends a reset, because the peer must not believe that it
// was read.
void Endpoint::close(CloseMode mode) {
  is_closed_ = true;
  file_ = nullptr;
  has_ended_ = true;
  const bool must_reset = mode == CloseMode::reset && !(has_sent_fin_ && peer_has_ended_);
  if (state_ == State::connecting ||
      (state_ == State::open && (must_reset || incoming_.size() != 0))) {
    reset_peer();
    die(0);
  } else if (state_ == State::open) {
    has_shut_down_ = true;
    transmit();
    if (is_fin_acknowledged_) keep_port_waiting();
  }
  forget_if_gone();
}

// Sends as much as the window allows, and then the FIN.
void Endpoint::transmit() {
  if (state_ != State::open) return;
  const std::size_t longest = network_.longest_segment(host_, other(connection_).host());
  while (window_ != 0 && outgoing_.size() != 0) {
    const std::size_t size = std::min({window_, outgoing_.size(), longest});
    const std::string_view bytes = outgoing_.front().substr(0, size);
    network_.send(
        connection_, side_, SegmentHeader(bytes),
        [this, segment = std::string(bytes)](Connection& to) { other(to).on_bytes(segment); });
    outgoing_.take(size);
    window_ -= size;
  }
  if (is_stalled() != (stalled_since_ != kForever)) watch_stall();
  if (outgoing_.size() != 0) return probe_later();
  if (!has_shut_down_ || std::exchange(has_sent_fin_, true)) return;
  ends_second_ = peer_has_ended_;
  network_.send(connection_, side_, SegmentHeader(SegmentKind::fin),
                [this](Connection& to) { other(to).on_fin(); });
}

// Zero-window probe: without it a sender would never notice a dead peer.
void Endpoint::probe_later() {
  if (std::exchange(is_probing_, true)) return;
  network_.kernel().at(network_.kernel().now() + probe_after_,
                       [&network = network_, id = connection_.id, side = side_] {
                         if (Connection* found = network.find(id)) found->end(side).probe();
                       });
}

void Endpoint::probe() {
  is_probing_ = false;
  if (state_ != State::open || window_ != 0 || outgoing_.size() == 0) return;
  probe_after_ = std::min(2 * probe_after_, kLastProbe);
  is_probing_ = true;
  network_.send(connection_, side_, SegmentHeader(std::string_view()), [this](Connection&) {
    is_probing_ = false;
    transmit();
  });
}

void Endpoint::reset_peer() {
  network_.send(connection_, side_, SegmentHeader(SegmentKind::reset),
                [this](Connection& to) { other(to).on_reset(); });
}

void Endpoint::die(int error) {
  state_ = State::dead;
  error_ = error;
  has_ended_ = true;
  outgoing_.clear();
  release_port();
  changed();
}

// Both sides have ended, and their FINs were acknowledged. The side that ended first enters
// TIME_WAIT, so that its port is not reused too soon.
void Endpoint::finish() {
  if (!peer_has_ended_ || !is_fin_acknowledged_ || state_ == State::dead) return;
  if (!ends_second_) keep_port_waiting();
  die(error_);
}

void Endpoint::forget_if_gone() {
  const Endpoint& peer = other(connection_);
  if (is_gone() && peer.is_gone()) network_.forget(connection_.id);
}

// ---- the port

std::uint64_t Endpoint::connection_number() const { return connection_.id; }

void Endpoint::reserve_port(PortReservation reservation) {
  reservation.owner = owner();
  reservation.host = host_;
  reservation.local = local_;
  reservation.peer = other(connection_).local();
  network_.reservations.add(reservation);
  has_reservation_ = true;
}

void Endpoint::share_port(const PortReservation& as) {
  if (has_reservation_) network_.reservations.share(host_, local_.port, owner(), as);
}

void Endpoint::release_port() {
  if (std::exchange(has_reservation_, false))
    network_.reservations.remove(host_, local_.port, owner());
}

void Endpoint::keep_port_waiting() {
  if (!has_reservation_) return;
  const auto wait =
      peer_has_ended_ ? PortReservations::Wait::for_nobody : PortReservations::Wait::for_peer;
  network_.reservations.wait(host_, local_.port, owner(), network_.kernel().now(), wait);
  if (peer_has_ended_) has_reservation_ = false;
}

void Endpoint::vanish() {
  has_vanished_ = true;
  is_closed_ = true;
  file_ = nullptr;
  incoming_.clear();
  die(0);
}

void Endpoint::reset_unknown(const SegmentHeader& header) {
  if (header.kind == SegmentKind::reset || header.kind == SegmentKind::syn_rst) return;
  network_.send(connection_, side_, SegmentHeader(SegmentKind::reset),
                [this](Connection& to) { other(to).on_reset(); });
}

void Endpoint::on_silence() {
  if (state_ == State::dead) return;
  die(ETIMEDOUT);
  forget_if_gone();
}

void Endpoint::on_established(std::size_t window) {
  if (state_ != State::connecting) return;
  state_ = State::open;
  window_ = window;
  changed();
}

void Endpoint::on_refused(int error) {
  if (state_ != State::connecting) return;
  die(error);
}

// Bytes that cannot be read any more are answered by a reset, if this end has also ended.
void Endpoint::on_bytes(std::string_view bytes) {
  if (state_ != State::open) return;
  if (is_closed_ || (has_sent_fin_ && has_ended_)) {
    reset_peer();
    die(ECONNRESET);
    return forget_if_gone();
  }
  incoming_.append(bytes);
  changed();
}

void Endpoint::on_window_update(std::size_t count) {
  window_ += count;
  probe_after_ = kFirstProbe;
  transmit();
  changed();
}

void Endpoint::on_fin() {
  other(connection_).on_fin_acknowledged();
  if (state_ != State::open) return;
  has_ended_ = peer_has_ended_ = true;
  changed();
  finish();
  forget_if_gone();
}

void Endpoint::on_fin_acknowledged() {
  if (state_ != State::open) return;
  is_fin_acknowledged_ = true;
  if (is_closed_ && !peer_has_ended_) keep_port_waiting();
  finish();
}

void Endpoint::on_reset() {
  if (state_ == State::dead) return;
  die(state_ == State::connecting ? ECONNREFUSED : peer_has_ended_ ? EPIPE : ECONNRESET);
  forget_if_gone();
}

}  // namespace spate::sim
