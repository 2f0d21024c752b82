#include "http/server/http2_connection.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/exchange_state.h"
#include "http/server/server_core.h"
#include "spate/error.h"
#include "spate/named_callback.h"
#include "spate/net/stream_use.h"

namespace spate::http {

namespace {

constexpr Nanos kTick{1'000'000'000};

Http2Wire& wire_of(Http2Stream& stream) { return static_cast<Http2Wire&>(stream); }

}  // namespace

Http2Connection::Http2Connection(ServerCore& server, Stream stream,
                                 std::unique_ptr<Address> peer)
    : server_(server),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      flush_(server.loop(), named<Timer, ActiveKind::http_request>([this] { flush(); })),
      tick_(server.loop(), named<Timer, ActiveKind::http_request>([this] { on_tick(); })) {
  set_use(stream_, StreamUse::http_request);
}

// Sends queued responses, as much as the windows allow. Inside the session nothing can be sent.
Http2Connection::~Http2Connection() {
  is_busy_ = true;
  const bool is_silent = is_in_session_ || session_ == nullptr || session_->is_over();
  if (!is_silent && stream_.is_writable()) {
    session_->refuse_streams(Http2Code::no_error);
    send_frames();
  }
  while (Http2Wire* wire = wires_.pop_front()) delete wire;
  if (!is_in_session_) delete session_;
}

Address Http2Connection::peer() const {
  if (peer_ == nullptr) peer_.reset(new (std::nothrow) Address(stream_.peer_address()));
  return peer_ == nullptr ? stream_.peer_address() : *peer_;
}

void Http2Connection::start() {
  const ServerOptions& options = server_.options();
  session_ = options.http2.engine()->make_server(*this, options.max_head).release();
  const bool is_set_up = session_ != nullptr && stream_.set_write_timeout(options.idle_timeout) &&
                         stream_.set_idle_timeout(options.idle_timeout);
  if (!is_set_up) return go();
  if (peer_ == nullptr && server_.keeps_peers())
    peer_.reset(new (std::nothrow) Address(stream_.peer_address()));
  is_local_ = server_.is_local(stream_);
  stream_.set_half_open(true);
  stream_.start(*this);
  if (server_.is_draining()) session_->announce_end();
  flush();
}

// ---- StreamHandler

// A callback may destroy this inside receive(). The session must exist until receive() returns, so
// the destructor leaves it, and it is deleted here.
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
  has_client_ended_ = true;
  session_->refuse_streams(Http2Code::no_error);
  while (Http2Wire* wire = find([](Http2Wire& each) { return each.must_report_end(); })) {
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

// GOAWAY states which streams were processed, so that the client can repeat the others.
void Http2Connection::close_if_idle() {
  if (requests_ != 0 && wires_.empty()) close_to_requests();
}

void Http2Connection::close_to_requests() {
  if (std::exchange(refuses_streams_, true)) return;
  session_->refuse_streams(Http2Code::no_error);
  flush_later();
}

void Http2Connection::abort(std::error_code error) {
  stream_.abort();
  lose(error);
}

// Sends the reason to the peer, and reads nothing more.
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
  if (server_.is_draining()) hurry(stream_);
  server_.forget(*this);
  delete this;
}

// ---- sending

void Http2Connection::flush_later() {
  if (is_in_session_) return;
  is_unsent_ = true;
  if (!is_busy_ && !flush_.is_active() && !flush_.start(Nanos{0})) flush_.feed();
}

// User code that is called here may queue more frames: is_busy_ makes an inner call only set
// is_unsent_, and the loop repeats.
void Http2Connection::flush() {
  is_unsent_ = true;
  if (is_busy_ || is_in_session_) return;
  const Watch watch(lifetime_);
  is_busy_ = true;
  while (std::exchange(is_unsent_, false) || has_news_ || may_start_held()) {
    send_frames();
    report_closed_streams();
    if (!watch.is_gone()) start_held();
    if (watch.is_gone()) return;
  }
  is_busy_ = false;
  if (frames_.is_broken()) return abort(lost());
  if (is_flooded_) return fail(Http2Code::enhance_your_calm, system_error(EBADMSG));
  const auto is_read = [](Http2Wire& wire) { return wire.is_complete(); };
  if (session_->is_over() && find(is_read) == nullptr) lose(lost());
}

// Calls no user code.
void Http2Connection::send_frames() {
  const bool was_in_session = std::exchange(is_in_session_, true);
  frames_.send_all(*session_, stream_);
  is_in_session_ = was_in_session;
}

void Http2Connection::report_closed_streams() {
  const Watch watch(lifetime_);
  while (std::exchange(has_news_, false)) {
    // Each call may destroy any of the wires, so the search starts at the first one again.
    while (Http2Wire* wire = find([](Http2Wire& each) { return each.has_news(); })) {
      std::unique_ptr<Http2Wire> gone(wire->is_gone() ? wire : nullptr);
      if (gone != nullptr) unlink(*gone);
      if (wires_.empty() && server_.is_draining()) server_.close_idle_soon();
      wire->tell();
      if (watch.is_gone()) return;
    }
  }
}

// Bounds the memory for a client that does not read. New requests are held back once as many bytes
// wait as if each stream had a full queue, or one file per stream.
bool Http2Connection::is_overfull() const {
  const std::uint64_t streams = server_.options().http2.engine()->max_streams();
  return queued_.in_memory > streams * QueueLimits().high || queued_.files >= streams;
}

// Calls no user code.
void Http2Connection::hold(Http2Wire& wire, Http2End end) {
  if (!wire.hold(end)) return;
  (held_ == nullptr ? held_ : last_held_->next_held) = &wire;
  last_held_ = &wire;
}

void Http2Connection::forget_held(Http2Wire& wire) {
  Http2Wire* before = nullptr;
  Http2Wire* each = held_;
  while (each != &wire) before = std::exchange(each, each->next_held);
  (before == nullptr ? held_ : before->next_held) = std::exchange(wire.next_held, nullptr);
  if (last_held_ == &wire) last_held_ = before;
}

void Http2Connection::start_held() {
  const Watch watch(lifetime_);
  while (!watch.is_gone() && may_start_held()) {
    Http2Wire& wire = *held_;
    forget_held(wire);
    wire.take_held();
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

// ---- timeouts

// A connection with streams is not idle; streams have their own timeouts.
void Http2Connection::on_tick() {
  if (is_busy_ || is_in_session_) return;
  const ServerOptions& options = server_.options();
  const Nanos now = server_.loop().now();
  if (wires_.empty()) {
    tick_.stop();
    if (!stream_.set_idle_timeout(options.idle_timeout)) close_to_requests();
    return;
  }
  if (is_late(now)) return fail(Http2Code::cancel, Error::read_timeout);
  for (Http2Wire* wire = wires_.first(); wire != nullptr; wire = wires_.after(*wire)) {
    // The Stream's write timeout covers a full queue.
    if (stream_.is_full()) wire->note_progress(now);
    if (options.idle_timeout > Nanos{0}) wire->check_progress(options.idle_timeout, now);
    wire->check_upload(now);
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
    wire.state()->header().add(head_, name, value, server_.head_limits());
  }
  return true;
}

bool Http2Connection::on_head(Http2Stream& stream, Http2End end) {
  const Watch watch(lifetime_);
  Http2Wire& wire = wire_of(stream);
  incoming_ = nullptr;
  if (wire.state() == nullptr) return true;
  if (++requests_ == server_.options().max_requests) session_->refuse_streams(Http2Code::no_error);
  const Refusal refusal = wire.state()->header().finish(head_, server_.head_limits());
  // Requests start in the order of their arrival: while one is held back, so are all later ones.
  if (!refusal && (held_ != nullptr || is_overfull())) return hold(wire, end), true;
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
  Http2Wire* wire = wires_.first();
  while (wire != nullptr && !is(*wire)) wire = wires_.after(*wire);
  return wire;
}

void Http2Connection::link(Http2Wire& wire) {
  wires_.push_front(wire);
  // With a stream, on_tick() checks timeouts in place of the idle timeout of the Stream.
  if (tick_.is_active()) return;
  tick_.start(kTick, kTick);
  stream_.set_idle_timeout(Nanos{0});
}

void Http2Connection::unlink(Http2Wire& wire) { wire.unlink(); }

}  // namespace spate::http
