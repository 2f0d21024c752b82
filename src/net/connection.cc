#include "net/connection.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>

#include "net/net.h"
#include "net/transport.h"
#include "spate/assert.h"
#include "spate/error.h"

namespace spate {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMillisecond = 1'000'000;
// How long a connection that nobody holds waits for its peer to take the last bytes and to end.
constexpr Nanos kLinger{10'000'000'000};
// How many bytes one connection sends, or how often it does, before the others have their turn.
constexpr int kSendsPerTurn = 8;
// Room for one more arrival behind what is unread.
constexpr std::size_t kArrival = 16 * 1024;

std::error_code system_error(long error) {
  return {static_cast<int>(error), std::system_category()};
}

}  // namespace

Connection* Connection::make(Transport& transport, int fd) {
  return new (std::nothrow) Connection(transport, fd);
}

Connection::Connection(Transport& transport, int fd) : transport_(&transport) {
  node_.fd = fd;
  node_.events = kFdIsNew;
  node_.head.callback = [](void*, Node& head, Events events) {
    reinterpret_cast<Connection&>(head).on_ready(events);
  };
  last_active_ = net().loop().now().count();
  net().enter();
}

Connection::~Connection() {
  Net& net = this->net();
  if (!has(kClosed)) transport_->close(*this, has_queue());
  if (net.is_alive()) net.loop().clear_pending(node_.head);
  transport_->leave(*this);
  net.leave();
}

Net& Connection::net() const { return transport_->net(); }

Connection::Extra* Connection::extra() {
  if (extra_ == nullptr) extra_.reset(new (std::nothrow) Extra);
  return extra_.get();
}

// An idle connection owns no memory but itself, unless it was told something out of the ordinary.
void Connection::drop_extra() {
  if (extra_ != nullptr && !has(kFull) && extra_->queue.empty() && extra_->unread.empty() &&
      !extra_->limits_are_set && extra_->write_timeout == Nanos{0}) {
    extra_.reset();
  }
}

// ---- the owner's calls

void Connection::start(StreamHandler& handler) {
  set_handler(&handler);
  set(kStarted);
  if (!is_open() || (extra_ != nullptr && !extra_->unread.empty())) {
    set(kOffer);
    settle_later();
  }
  update_wish();
}

bool Connection::is_open() const { return !has(kClosed) && net().is_alive(); }

std::size_t Connection::queued() const {
  const WriteGather& gather = net().gather();
  return (extra_ == nullptr ? 0 : extra_->queue.size()) +
         (gather.owner() == this ? gather.size() : 0);
}

bool Connection::set_limits(const QueueLimits& limits) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  extra->limits = limits;
  extra->limits_are_set = true;
  return true;
}

void Connection::pause() {
  set(kPaused);
  update_wish();
}

void Connection::resume() {
  if (!has(kPaused)) return;
  set(kPaused, false);
  if (extra_ != nullptr && !extra_->unread.empty()) {
    set(kOffer);
    settle_later();
  }
  update_wish();
}

void Connection::end() {
  if (!is_open() || has(kEnding)) return;
  set(kEnding);
  if (!has_queue() && !has(kInCallback)) shut_down();
}

void Connection::close() {
  if (!is_open()) return;
  set(kDiscarding);
  linger();
  if (has_nothing_to_lose()) settle_later();
}

void Connection::abort() {
  if (!is_open()) return;
  set(kReported);
  shut(true);
}

void Connection::abandon() {
  set(kAbandoned);
  set(kDiscarding);
  set_handler(nullptr);
  if (has(kInCallback)) return;
  if (!is_open()) {
    delete this;
  } else if (has_nothing_to_lose()) {
    shut(false);
    delete this;
  } else {
    linger();
    if (deadline_place_ != 0) return;
    shut(has_queue());  // Without memory for a deadline nobody would ever look at it again.
    delete this;
  }
}

void Connection::set_idle_timeout(Nanos timeout) {
  const std::int64_t ms = (timeout.count() + kMillisecond - 1) / kMillisecond;
  idle_ms_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 0, UINT32_MAX));
  if (!is_open() || has(kDiscarding)) return;
  touch();
  note_deadline();
}

void Connection::set_write_timeout(Nanos timeout) {
  if (timeout == Nanos{0} && extra_ == nullptr) return;
  Extra* extra = this->extra();
  if (extra == nullptr) return;
  extra->write_timeout = timeout;
  extra->last_sent = is_open() ? net().loop().now().count() : 0;
  if (is_open()) note_deadline();
}

bool Connection::may_be_released() const {
  return queued() == 0 && (extra_ == nullptr || extra_->unread.empty()) && !has(kEnding);
}

int Connection::release() {
  net().forget_deadline(*this);
  set(kClosed);
  set(kReported);
  return transport_->release(*this);
}

// ---- writing

bool Connection::write(Bytes bytes) {
  if (!is_writable()) return false;
  if (bytes.empty()) return true;
  if (drops() && !has_room_for(bytes.size())) return false;  // Before a part of it is sent.
  if (has_queue()) return has_room_for(bytes.size()) && enqueue(bytes);
  WriteGather& gather = net().gather();
  if (gather.owner() != this) return send_now({&bytes, 1});
  if (gather.add(bytes)) return true;
  Bytes pieces[3];
  const std::size_t gathered = gather.take(std::span(pieces).first<2>());
  pieces[gathered] = bytes;
  return send_now({pieces, gathered + 1});
}

bool Connection::write(Buffer&& buffer) {
  if (!is_writable()) return false;
  if (buffer.empty()) return true;
  send_gathered();
  if (!is_writable() || !has_room_for(buffer.size()) || extra() == nullptr) return false;
  const bool was_empty = !has_queue();
  extra_->queue.append(std::move(buffer));
  if (was_empty) {
    extra_->last_sent = net().loop().now().count();
    flush();
    note_deadline();
  }
  mark_full();
  return true;
}

// Sends pieces that come before anything else, and queues what the kernel does not take.
bool Connection::send_now(std::span<const Bytes> pieces) {
  set(kWrote);
  long sent = transport_->send(*this, pieces);
  if (sent == -EAGAIN || sent == -EINTR) sent = 0;
  if (sent < 0) return on_broken(static_cast<int>(-sent)), true;
  touch();
  auto left = static_cast<std::size_t>(sent);
  for (const Bytes piece : pieces) {
    const std::size_t done = std::min(left, piece.size());
    left -= done;
    if (done == piece.size()) continue;
    // Half a message cannot be taken back: without memory for the rest, this is the end.
    const bool has_room = drops() || has_room_for(piece.size() - done);
    if (!has_room || !enqueue(piece.subspan(done))) {
      if (!has(kBroken)) on_broken(ENOMEM);
      return false;
    }
  }
  return true;
}

void Connection::send_gathered() {
  WriteGather& gather = net().gather();
  if (gather.owner() != this || gather.empty()) return;
  Bytes pieces[2];
  const std::size_t count = gather.take(pieces);
  if (has_queue()) {
    for (std::size_t i = 0; i < count; ++i) enqueue(pieces[i]);
  } else {
    send_now({pieces, count});
  }
}

bool Connection::enqueue(Bytes bytes) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  const bool was_empty = extra->queue.empty();
  if (!extra->queue.append(bytes)) return drop_extra(), false;
  if (was_empty) {
    extra->last_sent = net().loop().now().count();
    update_wish();
    note_deadline();
  }
  mark_full();
  return true;
}

bool Connection::has_room_for(std::size_t size) {
  const QueueLimits limits = extra_ == nullptr ? QueueLimits{} : extra_->limits;
  const std::size_t queued = this->queued();
  if (queued <= limits.most && size <= limits.most - queued) return true;
  if (limits.when_full == WhenFull::close) {
    error_ = -static_cast<std::int32_t>(Error::queue_full);
    on_broken(0);
  }
  return false;
}

void Connection::mark_full() {
  if (has(kFull) || extra_->queue.size() <= extra_->limits.high) return;
  set(kFull);
  update_wish();
}

void Connection::flush() {
  for (int i = 0; i < kSendsPerTurn && has_queue(); ++i) {
    Bytes pieces[Transport::kMostPieces];
    std::size_t count = 0;
    std::size_t size = 0;
    for (const Bytes piece : extra_->queue.pieces()) {
      pieces[count++] = piece;
      size += piece.size();
      if (count == Transport::kMostPieces) break;
    }
    const long sent = transport_->send(*this, {pieces, count});
    if (sent == -EAGAIN || sent == -EINTR) break;
    if (sent < 0) return on_broken(static_cast<int>(-sent));
    set(kWrote);
    touch();
    extra_->last_sent = net().loop().now().count();
    extra_->queue.consume(static_cast<std::size_t>(sent));
    if (static_cast<std::size_t>(sent) < size) break;
  }
  if (!has_queue() && has(kEnding) && !has(kEnded)) shut_down();
  update_wish();
}

// In the loop's own time: what flush() has made possible.
bool Connection::on_flushed() {
  if (has(kFull) && extra_->queue.size() <= extra_->limits.low) {
    set(kFull, false);
    update_wish();
    if (!call({}, [](StreamHandler& handler) { handler.on_drained(); })) return false;
  }
  drop_extra();
  return true;
}

// Nothing more can be sent. What the peer has sent before may still be there: it is read first.
void Connection::on_broken(int error) {
  if (error != 0) error_ = error;
  set(kBroken);
  if (extra_ != nullptr) extra_->queue.clear();
  settle_later();
}

// ---- reading

// False, as of all that follow: the connection is closed, or gone.
bool Connection::receive() {
  const bool is_behind = extra_ != nullptr && !extra_->unread.empty();
  if (is_behind && extra_->unread.size() > extra_->limits.most)
    return finish(Error::queue_full, true), false;
  const std::span<std::byte> room = is_behind ? extra_->unread.reserve(kArrival) : net().arrivals();
  if (room.empty()) return finish(system_error(ENOMEM)), false;
  const long count = transport_->receive(*this, room);
  if (count == -EAGAIN || count == -EINTR) return !has(kBroken) || (finish(broken_error()), false);
  if (count < 0) return finish(has(kBroken) ? broken_error() : system_error(-count)), false;
  if (count == 0) return on_peer_end();
  if (has(kDiscarding)) return true;
  touch();
  const auto size = static_cast<std::size_t>(count);
  if (!is_behind) return hand_over(room.first(size));
  // Behind what the handler has left, so that it sees all of it in one piece.
  extra_->unread.commit(size);
  return offer_unread();
}

bool Connection::hand_over(Bytes bytes) {
  std::size_t used = 0;
  if (!call(bytes, [&](StreamHandler& handler) { used = handler.on_data(bytes); })) return false;
  SPATE_ASSERT(used <= bytes.size());
  if (used >= bytes.size() || has(kDiscarding)) return true;
  Extra* extra = this->extra();
  if (extra != nullptr && extra->unread.append(bytes.subspan(used))) return true;
  return finish(system_error(ENOMEM)), false;
}

bool Connection::offer_unread() {
  set(kOffer, false);
  if (extra_ == nullptr || extra_->unread.empty() || has(kPaused | kDiscarding)) return true;
  const Bytes bytes = extra_->unread.bytes();
  std::size_t used = 0;
  if (!call({}, [&](StreamHandler& handler) { used = handler.on_data(bytes); })) return false;
  SPATE_ASSERT(used <= bytes.size());
  extra_->unread.consume(std::min(used, bytes.size()));
  drop_extra();
  return true;
}

bool Connection::on_peer_end() {
  set(kPeerEnded);
  if (extra_ != nullptr) extra_->unread = Unread();
  update_wish();
  if (has(kBroken)) return finish(broken_error()), false;
  if (!call({}, [](StreamHandler& handler) { handler.on_end(); })) return false;
  if (!has(kHalfOpen)) end();
  if (!is_done()) return true;
  return finish({}), false;
}

// ---- ending

void Connection::shut_down() {
  transport_->shut_down(*this);
  set(kEnded);
  if (is_done()) settle_later();
}

// A reset, which closing a socket with unread input is, destroys what the peer has not read yet.
bool Connection::has_nothing_to_lose() const {
  return queued() == 0 && (has(kPeerEnded | kBroken) || !has(kWrote));
}

// Sends what is queued, ends our side, and throws away what still comes until the peer ends, too.
void Connection::linger() {
  end();
  set(kStarted);
  touch();
  update_wish();
  note_deadline();
}

// User code must not be called from inside a call to the Stream.
void Connection::settle_later() {
  if (!has(kInCallback) && net().is_alive()) net().loop().feed(node_.head, Events::custom);
}

// The end, in the loop's own time. The connection may be gone afterwards. If something of ours is
// lost, the peer must not take what it has for the whole.
void Connection::finish(std::error_code error, bool reset) {
  shut(reset || has_queue() || has(kBroken));
  error_ = error.category() == error_category() ? -error.value() : error.value();
  report();
}

void Connection::shut(bool reset) {
  net().forget_deadline(*this);
  transport_->close(*this, reset);
  set(kClosed);
  if (extra_ != nullptr) extra_->queue.clear();
}

void Connection::report() {
  if (has(kAbandoned)) {
    delete this;
  } else if (!has(kReported) && handler() != nullptr) {
    set(kReported);
    call({}, [&](StreamHandler& handler) { handler.on_closed(broken_error()); });
  }
}

// Calls user code. False if there is nothing left to go on with: the connection is closed, or gone.
template <class Function>
bool Connection::call(Bytes arrived, Function function) {
  if (handler() == nullptr) return is_open();
  WriteGather& gather = net().gather();
  // Another connection's callback may be running the loop.
  Connection* outer = gather.owner();
  if (outer != nullptr) outer->send_gathered();
  set(kInCallback);
  gather.begin(this, arrived);
  function(*handler());
  if (is_open()) send_gathered();
  gather.begin(outer, {});
  set(kInCallback, false);
  if (has(kNested)) look_again();
  if (has(kAbandoned)) return abandon(), false;
  if (!is_open()) return false;
  if (has(kEnding) && !has(kEnded) && !has_queue()) shut_down();
  if (has(kBroken) || is_done() || (has(kDiscarding) && has_nothing_to_lose())) settle_later();
  return true;
}

// After a callback that has run the loop.
void Connection::look_again() {
  set(kNested, false);
  if (!is_open()) return;
  update_wish();
  note_deadline();
  set(kOffer);
  settle_later();
}

// ---- the loop's calls

void Connection::on_ready(Events events) {
  if (is_in_callback()) return;
  const bool is_refused = any(events & Events::error) && node_.head.active == 0;
  if (is_refused) return on_broken(static_cast<int>(node_.head.extra));
  if (any(events & Events::custom) && !settle()) return;
  if (any(events & Events::write) && has_queue()) {
    flush();
    if (!on_flushed()) return;
  }
  if (any(events & (Events::read | Events::closed | Events::error)) && wants_to_read()) receive();
}

// A callback of this connection's is running the loop: nothing more happens to it until that has
// returned, which looks at everything again.
bool Connection::is_in_callback() {
  if (!has(kInCallback)) return false;
  set(kNested);
  transport_->want(*this, Events::none);
  return true;
}

// What could not be done inside a call to the Stream.
bool Connection::settle() {
  if (has(kClosed)) return report(), false;
  if (has(kBroken)) return bury(), false;
  if (is_done() || (has(kDiscarding) && has_nothing_to_lose())) return finish({}), false;
  return !has(kOffer) || offer_unread();
}

// Sending has failed. Whatever the peer sent before that is read, a piece a turn, then it is over.
void Connection::bury() {
  const bool was_dropped = error_ < 0;  // By us: the peer knows of nothing.
  if (was_dropped || !wants_to_read()) return finish(broken_error(), was_dropped);
  if (receive() && !has(kPeerEnded)) settle_later();
}

void Connection::on_deadline() {
  if (is_in_callback()) return;
  const std::int64_t now = net().loop().now().count();
  if (has(kDiscarding)) {
    if (now >= last_active_) return finish({}, has_queue());
  } else if (const std::error_code error = expired(now)) {
    return finish(error);
  }
  note_deadline();
}

void Connection::on_loop_end() {
  if (has(kAbandoned)) delete this;
}

std::error_code Connection::expired(std::int64_t now) const {
  if (write_deadline() <= now) return Error::write_timeout;
  if (idle_deadline() <= now) return Error::idle_timeout;
  return {};
}

std::int64_t Connection::idle_deadline() const {
  return idle_ms_ == 0 ? kNever : last_active_ + idle_ms_ * kMillisecond;
}

std::int64_t Connection::write_deadline() const {
  if (!has_queue() || extra_->write_timeout == Nanos{0}) return kNever;
  return extra_->last_sent + extra_->write_timeout.count();
}

// Without memory to note it, it is looked at when something happens.
void Connection::note_deadline() {
  const std::int64_t when =
      has(kDiscarding) ? last_active_ : std::min(idle_deadline(), write_deadline());
  if (when != kNever) net().note_deadline(*this, when);
}

void Connection::touch() {
  const std::int64_t now = net().loop().now().count();
  last_active_ = has(kDiscarding) ? now + kLinger.count() : now;
}

bool Connection::wants_to_read() const {
  if (!has(kStarted) || has(kPeerEnded | kClosed)) return false;
  if (has(kDiscarding)) return true;
  return !has(kPaused) && !(has(kFull) && extra_->limits.pause_reading);
}

void Connection::update_wish() {
  if (!is_open()) return;
  Events wish = wants_to_read() ? Events::read : Events::none;
  if (has_queue()) wish |= Events::write;
  if (!transport_->want(*this, wish)) on_broken(ENOMEM);
}

std::error_code Connection::broken_error() const {
  return error_ < 0 ? make_error_code(static_cast<Error>(-error_)) : system_error(error_);
}

}  // namespace spate
