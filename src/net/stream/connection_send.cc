// Connection's output: corking, the queue, and sending.
#include <algorithm>
#include <cerrno>

#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "spate/error.h"

namespace spate {

namespace {

// How often one connection sends before others are served.
constexpr int kSendsPerTurn = 8;
// A write of this size fits under the default limit even with a full cork buffer.
constexpr std::size_t kAlwaysFits = QueueLimits{}.max - WriteGather::kCapacity;
// Limits of corked bytes: copies, and bytes that are copied once for several connections.
constexpr std::size_t kMaxHeld = WriteGather::kCapacity;
constexpr std::size_t kMaxHeldShared = 64 * 1024;

}  // namespace

// Appends to the bytes that its callback has corked.
bool Connection::write_behind(Bytes bytes) {
  return loop_state().gather().add_behind(bytes) || write_slowly(bytes);
}

bool Connection::write_slowly(Bytes bytes) {
  if (!is_writable()) return false;
  if (bytes.empty()) return true;
  if ((busy_ != nullptr || bytes.size() > kAlwaysFits) && !has_room_for(bytes.size())) return false;
  if (has_queue()) return enqueue(bytes);
  WriteGather& gather = loop_state().gather();
  if (gather.owner() != this)
    return may_hold(bytes.size()) ? hold(bytes) : send_now({&bytes, 1}, bytes.size());
  if (gather.add(bytes)) return true;
  Bytes pieces[3];
  const std::size_t all = gather.size() + bytes.size();
  const std::size_t gathered = gather.take(std::span(pieces).first<2>());
  pieces[gathered] = bytes;
  return send_now({pieces, gathered + 1}, all);
}

bool Connection::write(std::span<const Bytes> pieces) {
  std::size_t size = 0;
  for (const Bytes piece : pieces) size += piece.size();
  if (!is_writable()) return false;
  if (size == 0) return true;
  if ((busy_ != nullptr || size > kAlwaysFits) && !has_room_for(size)) return false;
  WriteGather& gather = loop_state().gather();
  const bool is_ours = gather.owner() == this;
  const bool is_small = is_ours ? size <= WriteGather::kLargestCopied : may_hold(size);
  if (has_queue() || is_small || pieces.size() > Transport::kMaxPieces - 2) {
    for (const Bytes piece : pieces) {
      if (!piece.empty() && !write(piece)) return lose_rest();
    }
    return true;
  }
  Transport::Pieces room;
  const std::span<Bytes> all = room.all;
  if (is_ours) size += gather.size();
  const std::size_t gathered = is_ours ? gather.take(all.first<2>()) : 0;
  std::ranges::copy(pieces, all.begin() + static_cast<std::ptrdiff_t>(gathered));
  return send_now(all.first(gathered + pieces.size()), size);
}

bool Connection::write(Buffer&& buffer) {
  if (!is_writable()) return false;
  if (buffer.empty()) return true;
  queue_gathered();
  if (!is_writable() || !has_room_for(buffer.size()) || make_busy() == nullptr) return false;
  const bool was_empty = !has_queue();
  busy_->queue.append(std::move(buffer));
  if (was_empty) send_soon();
  mark_full();
  return true;
}

std::error_code Connection::send_file(int file, std::uint64_t offset, std::uint64_t size,
                                      ThreadPool& pool) {
  if (offset > INT64_MAX || size > INT64_MAX - offset) return sys::error_code(-EINVAL);
  if (!sys::is_open(file)) return sys::error_code(-EBADF);
  queue_gathered();
  if (!is_writable()) return sys::error_code(-EPIPE);
  if (size == 0) {
    sys::Descriptor closing(file);
    return {};
  }
  const bool was_empty = !has_queue();
  if (make_busy() == nullptr ||
      !busy_->queue.append_file(file, static_cast<std::int64_t>(offset), size, pool)) {
    return sys::error_code(-ENOMEM);
  }
  if (was_empty) send_soon();
  mark_full();
  return {};
}

std::error_code Connection::send_descriptors(Bytes bytes, std::span<const int> descriptors) {
  if (bytes.empty() || descriptors.empty() || descriptors.size() > sys::kMaxDescriptors)
    return sys::error_code(-EINVAL);
  if (!transport_->is_bare() || !sys::is_unix_socket(fd())) return sys::error_code(-EOPNOTSUPP);
  send_gathered();
  if (!is_writable()) return sys::error_code(-EPIPE);
  if (!has_room_for(bytes.size())) return Error::queue_full;
  const bool was_empty = !has_queue();
  if (make_busy() == nullptr) return sys::error_code(-ENOMEM);
  if (const long result = busy_->queue.append_with(bytes, descriptors); result < 0)
    return sys::error_code(result);
  if (was_empty) send_soon();
  mark_full();
  return {};
}

// Corks only inside a callback, where more writes may follow. Not inside a nested run of another
// loop, which may wait for the response.
bool Connection::may_hold(std::size_t size) const {
  return size <= WriteGather::kLargestCopied && Loop::current() == &loop_state().loop();
}

bool Connection::hold(Bytes bytes) {
  if (make_busy() == nullptr || !loop_state().hold_back(*this))
    return send_now({&bytes, 1}, bytes.size());
  if (!busy_->queue.append_shared(loop_state().shared_writes(), bytes)) return enqueue(bytes);
  on_queue_begun();
  mark_full();
  return true;
}

// Appends to corked bytes. high <= max, so checking `high` suffices.
bool Connection::add_to_held(Bytes bytes) {
  SendQueue& queue = busy_->queue;
  if (!is_writable() || queue.empty() || bytes.empty()) return false;
  return queue.size() + bytes.size() <= std::min(kMaxHeldShared, busy_->limits.high) &&
         queue.append_shared(loop_state().shared_writes(), bytes);
}

// Sends the bytes corked by its own callback and by others.
void Connection::send_what_waits() {
  send_gathered();
  if (is_held()) send_held();
}

void Connection::send_waiting() {
  send_gathered();
  if (is_held()) flush();
}

void Connection::send_held() {
  flush();
  drop_busy_state();
}

// Sends or corks bytes that are the first in the queue.
void Connection::send_soon() {
  busy_->write_timeout.restart(now());
  if (!may_hold(busy_->queue.size()) || !loop_state().hold_back(*this)) flush();
  note_deadline();
}

// Sends pieces of `size` bytes at once, ahead of anything else, and queues the rest that the kernel
// does not take. False as for lose_rest().
bool Connection::send_now(std::span<const Bytes> pieces, std::size_t size) {
  if (throttle() != nullptr) return send_slowly(pieces);
  set(kWrote);
  const long sent = transport_->send(*this, pieces);
  if (sent != static_cast<long>(size)) return on_sent_in_part(sent, pieces);
  note_activity();
  return true;
}

bool Connection::on_sent_in_part(long sent, std::span<const Bytes> pieces) {
  if (sent == -EAGAIN || sent == -EINTR) sent = 0;
  if (sent < 0) {
    on_broken(error_of(sent));
    return true;
  }
  note_activity();
  auto left = static_cast<std::size_t>(sent);
  for (const Bytes piece : pieces) {
    const std::size_t done = std::min(left, piece.size());
    left -= done;
    if (done == piece.size()) continue;
    if (!enqueue(piece.subspan(done))) return lose_rest();
  }
  return true;
}

// Uses the queue, which is sent as the throttle allows.
bool Connection::send_slowly(std::span<const Bytes> pieces) {
  for (const Bytes piece : pieces) {
    if (!busy_->queue.append(piece)) return lose_rest();
  }
  send_soon();
  mark_full();
  return true;
}

// A part was sent: without memory for the rest, the connection must end.
bool Connection::lose_rest() {
  on_broken(sys::error_code(-ENOMEM));
  return false;
}

void Connection::send_gathered() {
  WriteGather& gather = loop_state().gather();
  if (gather.owner() != this || gather.empty()) return;
  Bytes pieces[2];
  const std::size_t size = gather.size();
  const std::size_t count = gather.take(pieces);
  send_now({pieces, count}, size);
}

// As send_gathered(), but following bytes may join them.
void Connection::queue_gathered() {
  WriteGather& gather = loop_state().gather();
  if (gather.owner() != this || gather.empty()) return;
  if (!may_hold(gather.size())) return send_gathered();
  Bytes pieces[2];
  const std::size_t size = gather.size();
  const std::size_t count = gather.take(pieces);
  if (make_busy() == nullptr || !loop_state().hold_back(*this)) {
    send_now({pieces, count}, size);
    return;
  }
  for (const Bytes piece : std::span(pieces).first(count)) {
    if (!enqueue(piece)) {
      lose_rest();
      return;
    }
  }
}

bool Connection::enqueue(Bytes bytes) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  const bool was_empty = busy->queue.empty();
  if (!busy->queue.append(bytes)) {
    drop_busy_state();
    return false;
  }
  if (was_empty) on_queue_begun();
  mark_full();
  return true;
}

void Connection::on_queue_begun() {
  busy_->write_timeout.restart(now());
  if (!is_held()) update_wish();
  note_deadline();
}

bool Connection::fits(std::size_t size) const {
  const std::size_t max = busy_ == nullptr ? QueueLimits{}.max : busy_->limits.max;
  const WriteGather& gather = loop_state().gather();
  const std::size_t gathered = gather.owner() == this ? gather.size() : 0;
  const std::size_t queued = gathered + (busy_ == nullptr ? 0 : busy_->queue.in_memory());
  return queued <= max && size <= max - queued;
}

bool Connection::has_room_for(std::size_t size) {
  if (!fits(size) && is_held()) flush();
  if (!is_writable()) return false;
  if (fits(size)) return true;
  const WhenFull when_full = busy_ == nullptr ? QueueLimits{}.when_full : busy_->limits.when_full;
  if (when_full == WhenFull::close) give_up(Error::queue_full);
  return false;
}

// The queue is full only if the kernel was asked to take it, so corked bytes are sent first.
void Connection::mark_full() {
  if (busy_ == nullptr) return;
  const std::size_t high = busy_->limits.high;
  if (is_held() && busy_->queue.size() > std::min(kMaxHeld, high)) flush();
  if (has(kFull) || busy_->queue.size() <= high) return;
  set(kFull);
  update_wish();
}

void Connection::flush() {
  const bool was_held = is_held();
  if (was_held) loop_state().forget_held(*this);
  for (int i = 0; i < kSendsPerTurn && has_queue(); ++i) {
    const std::size_t max = allowance(Throttle::kWrite);
    if (max == 0) break;
    const auto [sent, was_all] = busy_->queue.send(*this, max);
    if (sent == -EAGAIN || sent == -EINTR) break;
    if (sent < 0) return on_broken(error_of(sent));
    set(kWrote);
    touch();
    busy_->write_timeout.restart(now());
    if (Throttle* throttle = this->throttle())
      throttle->used(Throttle::kWrite, static_cast<std::size_t>(sent));
    // After a short send the socket's buffer is full: another call would only return EAGAIN.
    if (!was_all) break;
  }
  if (was_held && has_queue()) busy_->queue.stop_sharing(*this);
  if (life_.is_ending() && !has_queue() && end_our_side()) return;
  update_wish();
}

// Sends the queue, from the loop. False if the connection was closed. With an empty queue and our
// side ending, the transport may still have to send close_notify.
bool Connection::send_queued() {
  if (!has_queue() && !life_.is_ending()) return true;
  flush();
  return on_flushed();
}

// Handles the results of flush().
bool Connection::on_flushed() {
  if (is_drained()) {
    go_on_reading();
    if (may_report() && !call([](StreamHandler& handler) { handler.on_drained(); })) return false;
  }
  if (!offer_unread()) return false;
  drop_busy_state();
  return true;
}

// The queue has drained: offers again the bytes that were left because it was full.
void Connection::go_on_reading() {
  if (has(kLeftWhileFull)) set(kOffer);
  clear(kFull | kLeftWhileFull);
  read_again();
  update_wish();
}

// Sending failed. Input that the peer sent before is read first.
void Connection::on_broken(std::error_code error) { fail(Turn::refused, error); }

void Connection::on_reset() { on_broken(sys::error_code(-ECONNRESET)); }

// Local abort: the peer has not failed, so its pending input is discarded.
void Connection::give_up(std::error_code error) { fail(Turn::give_up, error); }

}  // namespace spate
