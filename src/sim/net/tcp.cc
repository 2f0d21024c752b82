#include "sim/net/tcp.h"

#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/mix.h"
#include "sim/kernel/file.h"
#include "sim/net/network.h"

namespace spate::sim {

namespace {

// Equal on every machine.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

}  // namespace

std::uint64_t print_of(std::string_view bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::uint64_t print = mix(bytes.size());
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord))
    print = mix(print ^ word_of(bytes.substr(0, kWord)));
  return bytes.empty() ? print : mix(print ^ word_of(bytes));
}

Label::Label(std::string_view text)
    : kind(Kind::bytes), print(print_of(text)), size(text.size()), bytes(text) {}

void ByteQueue::take(std::size_t count) {
  begin_ += count;
  if (begin_ * 2 < bytes_.size()) return;
  bytes_.erase(0, begin_);
  begin_ = 0;
}

Endpoint& Endpoint::other(Connection& connection) const { return connection.end(opposite(side_)); }

void Endpoint::changed() {
  if (face_ != nullptr) face_->changed();
}

std::uint32_t Endpoint::ready() const {
  if (state_ == State::connecting) return 0;
  std::uint32_t events = error_ != 0 ? EPOLLERR : 0u;
  if (incoming_.size() != 0 || has_ended_) events |= EPOLLIN;
  if (has_ended_) events |= EPOLLRDHUP;
  if (has_ended_ && (has_shut_down_ || state_ == State::dead)) events |= EPOLLHUP;
  // As Linux, which says it when a third is free.
  const bool has_room = outgoing_.size() + send_buffer_ / 3 <= send_buffer_;
  if (has_room || has_shut_down_ || state_ == State::dead) events |= EPOLLOUT;
  return events;
}

long Endpoint::send(std::string_view bytes) {
  if (state_ == State::connecting) return -EAGAIN;
  if (error_ != 0) return -take_error();
  if (has_shut_down_ || state_ == State::dead) return -EPIPE;
  const std::size_t room = send_buffer_ - std::min(send_buffer_, outgoing_.size());
  if (room == 0 && !bytes.empty()) return -EAGAIN;
  bytes = bytes.substr(0, room);
  outgoing_.append(bytes);
  transmit();
  return static_cast<long>(bytes.size());
}

long Endpoint::receive(std::span<std::byte> room, Peek peek) {
  if (state_ == State::connecting) return -EAGAIN;
  const std::string_view bytes = incoming_.front().substr(0, room.size());
  if (bytes.empty()) {
    if (room.empty()) return 0;
    if (error_ != 0) return -take_error();
    return has_ended_ || state_ == State::dead ? 0 : -EAGAIN;
  }
  std::memcpy(room.data(), bytes.data(), bytes.size());
  const std::size_t count = bytes.size();
  if (peek == Peek::yes) return static_cast<long>(count);
  incoming_.take(count);
  owed_ += count;
  // Told when it is worth a packet, or when the sender may wait for it.
  if (state_ == State::open && !has_ended_ && (incoming_.size() == 0 || owed_ >= kSegment)) {
    network_.send(
        connection_, side_, Label(Kind::credit),
        [this, count = std::exchange(owed_, 0)](Connection& to) { other(to).on_credit(count); });
  }
  return static_cast<long>(count);
}

long Endpoint::shut_down_writing() {
  if (state_ != State::open) return -ENOTCONN;
  has_shut_down_ = true;
  transmit();
  changed();
  return 0;
}

void Endpoint::shut_down_reading() {
  has_ended_ = true;
  changed();
}

// As Linux: with unread input the end is a reset, as the peer must not believe that it was read.
void Endpoint::close(Farewell farewell) {
  is_closed_ = true;
  face_ = nullptr;
  if (state_ == State::open && (farewell == Farewell::reset || incoming_.size() != 0)) {
    reset_peer();
    die(0);
  } else if (state_ == State::open) {
    has_shut_down_ = true;
    transmit();
  } else if (state_ == State::connecting) {
    reset_peer();
    die(0);
  }
  forget_if_finished();
}

// As much as the peer has room for, and then the end.
void Endpoint::transmit() {
  if (state_ != State::open) return;
  const std::size_t longest = network_.longest_segment(host_, other(connection_).host());
  while (credit_ != 0 && outgoing_.size() != 0) {
    const std::size_t size = std::min({credit_, outgoing_.size(), longest});
    const std::string_view bytes = outgoing_.front().substr(0, size);
    network_.send(
        connection_, side_, Label(bytes),
        [this, segment = std::string(bytes)](Connection& to) { other(to).on_bytes(segment); });
    outgoing_.take(size);
    credit_ -= size;
  }
  if (outgoing_.size() != 0) return probe_later();
  if (!has_shut_down_ || std::exchange(has_sent_end_, true)) return;
  network_.send(connection_, side_, Label(Kind::end),
                [this](Connection& to) { other(to).on_end(); });
}

// Who may not send asks now and then whether he may, as the kernel does: or he would never hear
// that his peer is gone.
void Endpoint::probe_later() {
  if (std::exchange(is_probing_, true)) return;
  network_.kernel().at(network_.kernel().now() + probe_after_,
                       [&network = network_, id = connection_.id, side = side_] {
                         if (Connection* found = network.find(id)) found->end(side).probe();
                       });
}

void Endpoint::probe() {
  is_probing_ = false;
  if (state_ != State::open || credit_ != 0 || outgoing_.size() == 0) return;
  probe_after_ = std::min(2 * probe_after_, kLastProbe);
  is_probing_ = true;
  network_.send(connection_, side_, Label(std::string_view()), [this](Connection&) {
    is_probing_ = false;
    transmit();
  });
}

void Endpoint::reset_peer() {
  network_.send(connection_, side_, Label(Kind::reset),
                [this](Connection& to) { other(to).on_reset(); });
}

void Endpoint::die(int error) {
  state_ = State::dead;
  error_ = error;
  has_ended_ = true;
  outgoing_.clear();
  changed();
}

bool Endpoint::is_finished() const {
  return is_closed_ && (state_ == State::dead || (has_sent_end_ && has_ended_));
}

// What is still on its way finds no connection, and is dropped.
void Endpoint::forget_if_finished() {
  const Endpoint& peer = other(connection_);
  if ((is_gone() && peer.is_closed_) || (peer.is_gone() && is_closed_ && state_ == State::dead) ||
      (is_finished() && peer.is_finished()))
    network_.forget(connection_.id);
}

void Endpoint::vanish() {
  has_vanished_ = true;
  is_closed_ = true;
  face_ = nullptr;
  die(0);
}

void Endpoint::answer_stranger(const Label& label) {
  if (label.kind == Kind::reset || label.kind == Kind::refusal) return;
  network_.send(connection_, side_, Label(Kind::reset),
                [this](Connection& to) { other(to).on_reset(); });
}

void Endpoint::on_silence() {
  if (state_ == State::dead) return;
  die(ETIMEDOUT);
  forget_if_finished();
}

void Endpoint::on_established(std::size_t credit) {
  if (state_ != State::connecting) return;
  state_ = State::open;
  credit_ = credit;
  changed();
}

void Endpoint::on_refused(int error) {
  if (state_ != State::connecting) return;
  die(error);
}

void Endpoint::on_bytes(std::string_view bytes) {
  if (state_ != State::open) return;
  if (is_closed_) {  // Nobody will read them.
    reset_peer();
    die(0);
    return forget_if_finished();
  }
  incoming_.append(bytes);
  changed();
}

void Endpoint::on_credit(std::size_t count) {
  credit_ += count;
  probe_after_ = kFirstProbe;
  transmit();
  changed();
}

void Endpoint::on_end() {
  if (state_ != State::open) return;
  has_ended_ = true;
  changed();
  forget_if_finished();
}

void Endpoint::on_reset() {
  if (state_ == State::dead) return;
  const bool had_ended = has_ended_;
  die(state_ == State::connecting ? ECONNREFUSED : had_ended ? EPIPE : ECONNRESET);
  forget_if_finished();
}

}  // namespace spate::sim
