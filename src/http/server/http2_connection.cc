#include "http/server/http2_connection.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/exchange_state.h"
#include "http/server/server_core.h"
#include "spate/error.h"

namespace spate::http {

namespace {

constexpr Nanos kTick{1'000'000'000};

Http2Wire& wire_of(Http2Stream& stream) { return static_cast<Http2Wire&>(stream); }

}  // namespace

Http2Connection::Http2Connection(ServerCore& server, Stream stream,
                                 std::unique_ptr<Address> forwarded)
    : server_(server),
      stream_(std::move(stream)),
      forwarded_(std::move(forwarded)),
      flush_(server.loop(), [this] { flush(); }),
      tick_(server.loop(), [this] { on_tick(); }) {}

// What was answered is sent as far as windows allow it. Within the session nothing can be.
Http2Connection::~Http2Connection() {
  is_busy_ = true;
  const bool is_silent = is_in_session_ || session_ == nullptr || session_->is_over();
  if (!is_silent && stream_.is_writable()) {
    session_->refuse_streams(Http2Code::no_error);
    send_frames();
  }
  while (wires_ != nullptr) {
    const std::unique_ptr<Http2Wire> wire(wires_);
    unlink(*wire);
  }
  if (!is_in_session_) delete session_;
}

void Http2Connection::start() {
  const ServerOptions& options = server_.options();
  session_ = options.http2.engine()->make_server(*this, options.max_head).release();
  const bool is_set_up = session_ != nullptr && stream_.set_write_timeout(options.idle_timeout) &&
                         stream_.set_idle_timeout(options.idle_timeout);
  if (!is_set_up) return go();
  stream_.set_half_open(true);
  stream_.start(*this);
  if (server_.is_draining()) session_->announce_end();
  flush();
}

// ---- StreamHandler

std::size_t Http2Connection::on_data(Bytes bytes) {
  const Watch watch(lifetime_);
  Http2Session* const session = session_;
  is_in_session_ = true;
  const bool is_good = session->receive(bytes);
  if (watch.is_gone()) {
    delete session;
  } else {
    is_in_session_ = false;
    is_good ? flush() : fail(Http2Code::enhance_your_calm, system_error(EBADMSG));
  }
  return bytes.size();
}

void Http2Connection::on_end() {
  const Watch watch(lifetime_);
  session_->refuse_streams(Http2Code::no_error);
  while (Http2Wire* wire = find([](Http2Wire& each) { return each.has_to_hear_of_end(); })) {
    wire->take_client_end();
    if (watch.is_gone()) return;
  }
  flush();
}

void Http2Connection::on_closed(std::error_code error) { lose(error ? error : lost()); }

// ---- ServerConnection

void Http2Connection::on_drain() {
  session_->announce_end();
  flush_later();
}

void Http2Connection::close_to_requests() {
  session_->refuse_streams(Http2Code::no_error);
  flush_later();
}

void Http2Connection::abort(std::error_code error) {
  stream_.abort();
  lose(error);
}

// The peer is told why, and nothing more is taken from it.
void Http2Connection::fail(Http2Code code, std::error_code error) {
  session_->refuse_streams(code);
  send_frames();
  stream_.close();
  lose(error);
}

void Http2Connection::lose(std::error_code error) {
  const Watch watch(lifetime_);
  is_busy_ = true;
  while (Http2Wire* wire = find([](Http2Wire& each) { return each.state() != nullptr; })) {
    wire->lose(error);
    if (watch.is_gone()) return;
  }
  go();
}

void Http2Connection::go() {
  server_.forget(*this);
  delete this;
}

// ---- sending

void Http2Connection::flush_later() {
  if (is_in_session_) return;
  is_unsent_ = true;
  if (!is_busy_ && !flush_.is_active() && !flush_.start(Nanos{0})) flush_.feed();
}

void Http2Connection::flush() {
  is_unsent_ = true;
  if (is_busy_ || is_in_session_) return;
  const Watch watch(lifetime_);
  is_busy_ = true;
  while (std::exchange(is_unsent_, false) || has_news_) {
    send_frames();
    tell_streams();
    if (watch.is_gone()) return;
  }
  is_busy_ = false;
  if (frames_.is_broken()) return abort(lost());
  if (is_flooded_) return fail(Http2Code::enhance_your_calm, system_error(EBADMSG));
  const auto is_read = [](Http2Wire& wire) { return wire.is_complete(); };
  if (session_->is_over() && find(is_read) == nullptr) lose(lost());
}

// Nobody is called.
void Http2Connection::send_frames() {
  const bool was_in_session = std::exchange(is_in_session_, true);
  frames_.send_all(*session_, stream_);
  is_in_session_ = was_in_session;
}

void Http2Connection::tell_streams() {
  const Watch watch(lifetime_);
  while (std::exchange(has_news_, false)) {
    while (Http2Wire* wire = find([](Http2Wire& each) { return each.has_news(); })) {
      std::unique_ptr<Http2Wire> gone(wire->is_gone() ? wire : nullptr);
      if (gone != nullptr) unlink(*gone);
      wire->tell();
      if (watch.is_gone()) return;
    }
  }
}

void Http2Connection::settle(Http2Wire& wire, ExchangeState& state) {
  const Watch watch(lifetime_);
  const bool was_busy = std::exchange(is_busy_, true);
  wire.settle_now(state);
  if (watch.is_gone()) return;
  is_busy_ = was_busy;
  flush();
}

// ---- deadlines

// While there are streams, it is not idle; they have times of their own.
void Http2Connection::on_tick() {
  if (is_busy_ || is_in_session_) return;
  const ServerOptions& options = server_.options();
  const Nanos now = server_.loop().now();
  if (wires_ == nullptr) {
    tick_.stop();
    if (!stream_.set_idle_timeout(options.idle_timeout)) close_to_requests();
    return;
  }
  if (is_late(now)) return fail(Http2Code::cancel, Error::read_timeout);
  for (Http2Wire* wire = wires_; wire != nullptr; wire = wire->next) {
    if (stream_.is_full()) wire->note_progress(now);  // The Stream's write timeout is for that.
    if (options.idle_timeout > Nanos{0}) wire->check_progress(options.idle_timeout, now);
  }
  flush();
}

bool Http2Connection::is_late(Nanos now) const {
  const Nanos timeout = server_.options().head_timeout;
  return incoming_ != nullptr && timeout > Nanos{0} && now - head_since_ >= timeout;
}

// ---- Http2Events

Http2Stream* Http2Connection::on_stream(std::int32_t id) {
  ExchangeState* state = server_.pool().take();
  if (state == nullptr) return nullptr;
  auto* wire = new (std::nothrow) Http2Wire(*this, id, *state);
  if (wire == nullptr) return server_.pool().give_back(state), nullptr;
  head_since_ = server_.loop().now();
  state->attach(*wire, head_since_);
  link(*wire);
  head_.begin();
  incoming_ = wire;
  return wire;
}

bool Http2Connection::on_field(Http2Stream& stream, std::string_view name, std::string_view value) {
  Http2Wire& wire = wire_of(stream);
  if (wire.has_head()) {
    wire.take_trailer(name, value);
  } else if (wire.state() != nullptr) {
    head_.add(name, value, server_.head_limits(), wire.state()->head);
  }
  return true;
}

bool Http2Connection::on_head(Http2Stream& stream, Http2End end) {
  const Watch watch(lifetime_);
  Http2Wire& wire = wire_of(stream);
  incoming_ = nullptr;
  if (wire.state() == nullptr) return true;
  if (++requests_ == server_.options().max_requests) session_->refuse_streams(Http2Code::no_error);
  const Refusal refusal = head_.finish(server_.head_limits(), wire.state()->head);
  wire.state()->head_text = head_.text();
  wire.take_head(refusal, end);
  return !watch.is_gone();
}

bool Http2Connection::on_body(Http2Stream& stream, Bytes bytes) {
  const Watch watch(lifetime_);
  wire_of(stream).take_body(bytes);
  return !watch.is_gone();
}

bool Http2Connection::on_body_end(Http2Stream& stream) {
  const Watch watch(lifetime_);
  wire_of(stream).take_end();
  return !watch.is_gone();
}

bool Http2Connection::on_frame(Http2Frame kind) {
  return patience_.bears(kind, server_.loop().now());
}

void Http2Connection::on_violation(Broken broken) {
  server_.count_refused();
  if (broken == Broken::stream && !patience_.bears_violation(server_.loop().now()))
    is_flooded_ = true;
}

void Http2Connection::on_stream_closed(Http2Stream& stream, Http2Code code) {
  Http2Wire& wire = wire_of(stream);
  if (incoming_ == &wire) incoming_ = nullptr;
  wire.on_stream_closed(code);
}

Http2Piece Http2Connection::next_piece(Http2Stream& stream, std::size_t most) {
  return wire_of(stream).next_piece(most);
}

Http2Sent Http2Connection::send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) {
  patience_.on_sent(size);
  return frames_.send_piece(frame_head, size, wire_of(stream), stream_);
}

void Http2Connection::on_end_sent(Http2Stream& stream) { wire_of(stream).on_end_sent(); }

// ---- the streams

template <class Is>
Http2Wire* Http2Connection::find(Is is) {
  Http2Wire* wire = wires_;
  while (wire != nullptr && !is(*wire)) wire = wire->next;
  return wire;
}

void Http2Connection::link(Http2Wire& wire) {
  wire.next = wires_;
  if (wires_ != nullptr) wires_->previous = &wire;
  wires_ = &wire;
  if (tick_.is_active()) return;
  tick_.start(kTick, kTick);
  stream_.set_idle_timeout(Nanos{0});
}

void Http2Connection::unlink(Http2Wire& wire) {
  if (wire.next != nullptr) wire.next->previous = wire.previous;
  (wire.previous == nullptr ? wires_ : wire.previous->next) = wire.next;
}

}  // namespace spate::http
