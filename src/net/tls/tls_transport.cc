#include "net/tls/tls_transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/tls/tls_attempt.h"
#include "sys/datagram.h"
#include "sys/file.h"

namespace spate {

namespace {

constexpr std::size_t kFullRecord = 16 * 1024;

bool is_later(long result) { return result == -EAGAIN || result == -EINTR; }

}  // namespace

// The bytes to send: pieces in memory, or a part of a file.
class TlsTransport::Source {
 public:
  explicit Source(std::span<const Bytes> pieces) : pieces_(pieces) {
    for (const Bytes piece : pieces) left_ += piece.size();
  }
  Source(int file, std::int64_t offset, std::size_t size)
      : file_(file), offset_(offset), left_(size) {}

  std::size_t left() const { return left_; }

  // Returns the next bytes, at most `most`, in place or copied to `room`: their number; for a file
  // also 0 for its end, or a negated errno.
  long next(std::span<std::byte> room, std::size_t most, Bytes& bytes) {
    const long count = file_ < 0 ? next_pieces(room.first(kFullRecord), most, bytes)
                                 : read_file(room, most, bytes);
    if (count > 0) skip(static_cast<std::size_t>(count));
    return count;
  }
  void skip(std::size_t count) {
    left_ -= count;
    offset_ += static_cast<std::int64_t>(count);
    while (file_ < 0 && count > 0) {
      const std::size_t part = std::min(count, pieces_.front().size() - begin_);
      begin_ += part;
      count -= part;
      if (begin_ < pieces_.front().size()) break;
      pieces_ = pieces_.subspan(1);
      begin_ = 0;
    }
  }

 private:
  // Small pieces are joined, so that they share a record.
  long next_pieces(std::span<std::byte> room, std::size_t most, Bytes& bytes) const {
    const Bytes first = pieces_.front().subspan(begin_);
    if (first.size() >= room.size() || first.size() == left_) {
      bytes = first.first(std::min(first.size(), most));
      return static_cast<long>(bytes.size());
    }
    std::size_t size = 0;
    for (std::size_t i = 0; i < pieces_.size() && size < std::min(room.size(), most); ++i) {
      const Bytes piece = i == 0 ? first : pieces_[i];
      const std::size_t part = std::min({piece.size(), room.size() - size, most - size});
      if (part > 0) std::memcpy(room.data() + size, piece.data(), part);
      size += part;
    }
    bytes = room.first(size);
    return static_cast<long>(size);
  }
  long read_file(std::span<std::byte> room, std::size_t most, Bytes& bytes) const {
    const std::size_t part = std::min({room.size(), most, left_});
    const long count = sys::read_at(file_, room.data(), part, offset_);
    if (count > 0) bytes = room.first(static_cast<std::size_t>(count));
    return count;
  }

  std::span<const Bytes> pieces_;
  std::size_t begin_ = 0;  // Offset in the first piece.
  int file_ = -1;
  std::int64_t offset_ = 0;
  std::size_t left_ = 0;
};

TlsTransport* TlsTransport::put_over(Connection& connection, LoopTls& loop_state,
                                     std::unique_ptr<TlsEngine> engine, TlsAttempt& attempt) {
  auto* transport = new (std::nothrow)
      TlsTransport(connection.transport(), loop_state, std::move(engine), attempt);
  if (transport != nullptr) connection.put_transport(*transport);
  return transport;
}

TlsTransport::TlsTransport(Transport& below, LoopTls& tls, std::unique_ptr<TlsEngine> engine,
                           TlsAttempt& attempt)
    : Transport(below.loop_state()),
      below_(below),
      loop_tls_(tls),
      engine_(std::move(engine)),
      attempt_(&attempt) {
  loop_tls_.enter();
}

TlsTransport::~TlsTransport() {
  if (is_listed_) loop_tls_.forget_busy(*this);
  engine_.reset();
  loop_tls_.leave();
}

// ---- interest in the transport below

Events TlsTransport::wish_below() const {
  Events wish = wish_;
  if (phase_ == Phase::handshake) wish = is_queued_ ? Events::none : Events::read;
  if (!ciphertext_.empty()) wish |= Events::write;
  if (ciphertext_.size() > kMostUnsent) wish &= ~Events::read;
  return wish;
}

bool TlsTransport::want(Connection& connection, Events events) {
  wish_ = events;
  return ask_below(connection);
}

// Changing the interest below may drop queued events, and with them one fed by look_again(), so
// that is repeated.
bool TlsTransport::ask_below(Connection& connection) {
  const bool is_asked = below_.want(connection, wish_below());
  look_again(connection);
  return is_asked;
}

// Plaintext inside the engine causes no event from below.
void TlsTransport::look_again(Connection& connection) {
  if (!any(wish_ & Events::read) || !loop_tls_.is_alive() || !has_inside()) return;
  loop_tls_.loop().feed(connection.node().head, Events::read);
}

bool TlsTransport::has_inside() const {
  return phase_ == Phase::open && (is_over_ || !unfed_.empty() || engine_->has_decrypted());
}

Events TlsTransport::on_event(Connection& connection, Events events) {
  const Events left = below_.on_event(connection, events);
  const bool may_send = any(left & Events::write);
  if (may_send && flush(connection) != -EAGAIN) ask_below(connection);
  if (phase_ != Phase::handshake) return left;
  constexpr Events kFromPeer = Events::read | Events::peer_closed;
  if (any(left & kFromPeer)) loop_tls_.ask(*attempt_);
  return left & (Events::custom | Events::error);
}

// ---- the handshake

void TlsTransport::set_queued(Connection& connection, bool on) {
  is_queued_ = on;
  if (loop_tls_.is_alive()) ask_below(connection);
}

void TlsTransport::step(Connection& connection) {
  const auto area = loop_tls_.lend_area();
  if (!area) return fail(connection, failure_of(-ENOMEM));
  const long came = below_.receive(connection, area->in);
  if (came == 0) return fail(connection, {Error::tls_handshake, "the peer ended the connection"});
  if (came < 0 && !is_later(came)) return fail(connection, failure_of(came));
  TlsWire wire({}, area->out, ciphertext_);
  if (came > 0) wire.feed(Bytes(area->in, static_cast<std::size_t>(came)));
  TlsFailure why;
  const TlsEngine::Progress progress = engine_->shake_hands(wire, why);
  const bool is_kept = keep_unfed(wire);
  send_out(connection, wire);
  if (progress == TlsEngine::Progress::failed) return fail(connection, std::move(why));
  if (!is_kept || wire.is_out_of_memory()) return fail(connection, failure_of(-ENOMEM));
  if (progress == TlsEngine::Progress::done) {
    phase_ = Phase::open;
    note_use();
    std::exchange(attempt_, nullptr)->on_secured();
  }
  ask_below(connection);
}

// An event from below must find an attempt in each handshake, until the Stream is closed.
void TlsTransport::forget_attempt() {
  attempt_ = nullptr;
  if (phase_ == Phase::handshake) phase_ = Phase::failed;
}

// Only the alert remains to be sent; further input is discarded.
void TlsTransport::fail(Connection& connection, TlsFailure why) {
  phase_ = Phase::failed;
  engine_.reset();
  unfed_ = Unread();
  ask_below(connection);
  if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->on_failed(std::move(why));
}

// ---- input

long TlsTransport::receive_own_way(Connection& connection, std::span<std::byte> room) {
  if (phase_ == Phase::handshake) return -EAGAIN;
  if (phase_ == Phase::failed) return below_.receive(connection, room);
  if (is_over_) return final_result_;
  if (ciphertext_.size() > kMostUnsent) return -EAGAIN;
  const auto area = loop_tls_.lend_area();
  if (!area) return -ENOMEM;
  note_use();
  TlsWire wire(unfed_.bytes(), area->out, ciphertext_);
  bool has_fetched = false;
  long result = read(connection, wire, *area, room, has_fetched);
  if (!keep_unfed(wire) || wire.is_out_of_memory()) {
    is_over_ = true;
    final_result_ = result = -ENOMEM;
  }
  const bool is_sent = send_out(connection, wire) == 0;
  if (is_sent && has_fetched) {
    look_again(connection);
  } else {
    // Level-triggered again: an event that was not handled completely must be reported again.
    ask_below(connection);
  }
  return result;
}

// Returns plaintext inside the engine first, then that of one read from below, as a socket would.
// The engine is called only if it has input: a call that returns nothing costs half as much as a
// record.
long TlsTransport::read(Connection& connection, TlsWire& wire, TlsArea& area,
                        std::span<std::byte> room, bool& has_fetched) {
  std::size_t got = 0;
  while (got < room.size()) {
    if (wire.in().empty() && !engine_->has_decrypted()) {
      if (got > 0 || std::exchange(has_fetched, true)) break;
      const long came = fetch(connection, wire, area, room.size());
      if (came <= 0) return came;
    }
    const long count = engine_->decrypt(wire, room.subspan(got));
    if (count > 0) {
      got += static_cast<std::size_t>(count);
    } else if (count != -EAGAIN) {
      is_over_ = true;
      final_result_ = count;
      break;
    }
  }
  if (got > 0) return static_cast<long>(got);
  return is_over_ ? final_result_ : -EAGAIN;
}

// Fetches as much ciphertext as fits into `room` when decrypted, in addition to an incomplete
// record inside the engine.
long TlsTransport::fetch(Connection& connection, TlsWire& wire, TlsArea& area, std::size_t room) {
  unfed_ = Unread();
  const std::size_t most = room >= 2 * kRecord ? room - kRecord : kRecord;
  const std::span<std::byte> part = std::span(area.in).first(std::min(most, sizeof(area.in)));
  const long came = below_.receive(connection, part);
  was_full_ = below_.may_have_more(came, part.size());
  if (came == -EAGAIN && below_.is_socket()) sys::discard_queued_errors(connection.fd());
  if (came > 0) wire.feed(Bytes(area.in, static_cast<std::size_t>(came)));
  if (came != 0 || connection.is_discarding()) return came;
  return result_of(Error::tls_truncated);
}

// Keeps unused ciphertext. False when memory runs out.
bool TlsTransport::keep_unfed(const TlsWire& wire) {
  const Bytes left = wire.in();
  if (!unfed_.empty()) {
    unfed_.consume(unfed_.size() - left.size());
    return true;
  }
  return left.empty() || unfed_.append(left);
}

// ---- output

// Sends waiting ciphertext. Returns 0 when all was sent, or lost with the connection.
long TlsTransport::flush(Connection& connection) {
  if (ciphertext_.empty()) return 0;
  const Bytes bytes = ciphertext_.bytes();
  const long sent = below_.send(connection, {&bytes, 1});
  if (sent > 0) ciphertext_.consume(static_cast<std::size_t>(sent));
  if (sent < 0 && !is_later(sent)) {
    ciphertext_ = Unread();
    broken_ = sent;
  }
  return ciphertext_.empty() ? 0 : -EAGAIN;
}

// Sends the engine's output, at once if possible. Returns as flush().
long TlsTransport::send_out(Connection& connection, TlsWire& wire) {
  const Bytes bytes = wire.take_out();
  if (bytes.empty() || broken_ != 0) return flush(connection);
  const long sent = below_.send(connection, {&bytes, 1});
  if (sent < 0 && !is_later(sent)) {
    broken_ = sent;
    return 0;
  }
  const Bytes left = bytes.subspan(sent < 0 ? 0 : static_cast<std::size_t>(sent));
  if (left.empty()) return 0;
  if (ciphertext_.append(left)) return -EAGAIN;
  broken_ = -ENOMEM;
  return 0;
}

// Returns how many plaintext bytes have certainly been sent: ciphertext is never shorter than its
// plaintext.
std::size_t TlsTransport::take_settled(std::size_t given) {
  const std::size_t settled = owed_ - std::min(owed_, ciphertext_.size());
  const std::size_t count = std::min(settled, given);
  owed_ -= count;
  return count;
}

long TlsTransport::send_own_way(Connection& connection, std::span<const Bytes> pieces) {
  Source source(pieces);
  return send_all(connection, source);
}

long TlsTransport::send_file(Connection& connection, int file, std::int64_t offset,
                             std::size_t size) {
  Source source(file, offset, size);
  return send_all(connection, source);
}

long TlsTransport::send_all(Connection& connection, Source& source) {
  if (phase_ == Phase::handshake) return -EAGAIN;
  if (phase_ == Phase::failed) return -EPIPE;
  note_use();
  flush(connection);
  if (broken_ != 0) return broken_;  // Nothing more can be sent.
  std::size_t sent = take_settled(source.left());
  source.skip(sent);
  long result = -EAGAIN;
  for (int i = 0; i < kBatches && source.left() > 0; ++i) {
    if (broken_ != 0 || owed_ != 0 || !ciphertext_.empty()) break;
    result = send_batch(connection, source);
    if (result <= 0) break;
    sent += static_cast<std::size_t>(result);
  }
  if (sent > 0) return static_cast<long>(sent);
  return broken_ != 0 ? broken_ : result;
}

// Returns how many bytes were sent, or an error; 0 at a file's end.
long TlsTransport::send_batch(Connection& connection, Source& source) {
  const auto area = loop_tls_.lend_area();
  if (!area) return -ENOMEM;
  TlsWire wire({}, area->out, ciphertext_);
  long count = 0;
  while (owed_ < TlsArea::kPlain && source.left() > 0) {
    Bytes bytes;
    count = source.next(area->in, TlsArea::kPlain - owed_, bytes);
    if (count <= 0) break;
    if (const long result = engine_->encrypt(wire, bytes); result < 0) return broken_ = result;
    owed_ += bytes.size();
  }
  if (owed_ == 0) return count;
  send_out(connection, wire);
  if (broken_ != 0) return broken_;
  const std::size_t sent = take_settled(owed_);
  return sent > 0 ? static_cast<long>(sent) : -EAGAIN;
}

// ---- end

bool TlsTransport::has_farewell() const {
  return may_send_close_notify() || !ciphertext_.empty() || below_.has_farewell();
}

// After an error, the engine has already sent an alert instead.
bool TlsTransport::may_send_close_notify() const {
  return phase_ == Phase::open && !has_sent_close_notify_ && broken_ == 0 && final_result_ == 0;
}

bool TlsTransport::shut_down(Connection& connection) {
  say_goodbye(connection);
  if (flush(connection) == 0) return below_.shut_down(connection);
  ask_below(connection);
  return false;
}

void TlsTransport::say_goodbye(Connection& connection) {
  if (!may_send_close_notify()) return;
  has_sent_close_notify_ = true;
  const auto area = loop_tls_.lend_area();
  if (!area) return;
  TlsWire wire({}, area->out, ciphertext_);
  engine_->say_goodbye(wire);
  send_out(connection, wire);
}

// A connection that is closed with an empty queue, for being idle for example, still sends
// close_notify.
void TlsTransport::close(Connection& connection, bool reset) {
  if (!reset && !connection.is_parents()) say_goodbye(connection);
  below_.close(connection, reset || !ciphertext_.empty());
  phase_ = Phase::failed;
  engine_.reset();
  ciphertext_ = Unread();
  unfed_ = Unread();
  if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->on_lost();
}

void TlsTransport::on_fork() {
  ciphertext_ = Unread();
  owed_ = 0;
  below_.on_fork();
}

void TlsTransport::leave(Connection& connection) {
  below_.leave(connection);
  delete this;
}

// ---- idleness

void TlsTransport::note_use() {
  has_moved_ = true;
  if (std::exchange(is_listed_, true)) return;
  loop_tls_.note_busy(*this);
}

bool TlsTransport::rest_unless_busy() {
  if (std::exchange(has_moved_, false)) return false;
  is_listed_ = false;
  if (phase_ == Phase::open) engine_->rest();
  return true;
}

}  // namespace spate
