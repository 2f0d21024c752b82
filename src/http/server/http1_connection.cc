// Http1Connection's input: header sections and bodies, and the begin and end of exchanges.
// Responses are in http1_response.cc.
#include "http/server/http1_connection.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/server_core.h"
#include "spate/error.h"
#include "spate/net/proxy_protocol.h"
#include "spate/net/stream_info.h"
#include "spate/net/stream_use.h"

namespace spate::http {

Http1Connection::Http1Connection(ServerCore& server, Stream stream,
                                 std::unique_ptr<Address> peer)
    : server_(server), stream_(std::move(stream)), peer_(std::move(peer)) {
  set_use(stream_, StreamUse::http_request);
}

Http1Connection::~Http1Connection() {
  if (state_ != nullptr) std::exchange(state_, nullptr)->detach_without_callback();
}

Address Http1Connection::peer() const {
  if (peer_ == nullptr) peer_.reset(new (std::nothrow) Address(stream_.peer_address()));
  return peer_ == nullptr ? stream_.peer_address() : *peer_;
}

void Http1Connection::start() {
  if (server_.expects_proxy_header(stream_)) {
    set(kInProxyHeader);
    stream_.set_deadline(server_.options().head_timeout);
  }
  if (peer_ == nullptr && server_.keeps_peers())
    peer_.reset(new (std::nothrow) Address(stream_.peer_address()));
  if (server_.is_local(stream_)) set(kLocal);
  // A client may end its side after the request, and still wait for the response.
  stream_.set_half_open(true);
  if (!stream_.set_idle_timeout(server_.options().idle_timeout)) return go();
  stream_.start(*this);
}

// ---- receiving

std::size_t Http1Connection::on_data(Bytes bytes) {
  const Watch watch(lifetime_);
  std::size_t used = 0;
  while (used < bytes.size()) {
    const std::size_t count = take(bytes.subspan(used));
    used += count;
    if (count == 0 || watch.is_gone()) break;
  }
  return used;
}

std::size_t Http1Connection::take(Bytes bytes) {
  if (has(kInProxyHeader)) return take_proxy_header(bytes);
  if (state_ == nullptr || has(kInHead)) return has(kClosing) ? 0 : take_head(bytes);
  const IncomingBody& body = state_->body();
  return body.is_flowing() && !body.is_received() ? take_body(*state_, bytes) : hold();
}

std::size_t Http1Connection::take_proxy_header(Bytes bytes) {
  const ProxyHeader header = parse_proxy_header(bytes);
  if (header.state == ProxyHeader::State::unfinished) return 0;
  const bool is_named = header.source.family() != Address::Family::none;
  if (is_named) peer_.reset(new (std::nothrow) Address(header.source));
  if (header.state == ProxyHeader::State::broken || (is_named && peer_ == nullptr)) {
    server_.count_refused();
    this->abort(system_error(EBADMSG));
    return bytes.size();
  }
  clear(kInProxyHeader);
  stream_.set_deadline(Nanos{0});
  return header.size;
}

// Leaves the input for the next exchange, or until the body is asked for.
std::size_t Http1Connection::hold() {
  set(kHeld);
  update_reading();
  return 0;
}

void Http1Connection::update_reading() {
  const bool is_paused = has(kHeld) || (state_ != nullptr && state_->body().is_paused());
  if (is_paused == stream_.is_paused()) return;
  is_paused ? stream_.pause() : stream_.resume();
}

std::size_t Http1Connection::take_head(Bytes bytes) {
  if (stream_.is_full()) return hold();
  if (state_ == nullptr) {
    state_ = server_.pool().take();
    if (state_ == nullptr) return stream_.close(), bytes.size();
    state_->attach(*this, server_.loop().now());
    set(kInHead);
  }
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  const Parsed parsed = state.header().parse(bytes, server_.head_limits());
  if (parsed.state == Parsed::State::whole) return take_request(state);
  if (parsed.state == Parsed::State::broken) {
    if (is_http2(bytes)) return become_http2(state), 0;
    state.header().forget();
    refuse(state, parsed.refusal);
    return bytes.size();
  }
  server_.list(state);
  return 0;
}

// Detects the preface of a client with prior knowledge of HTTP/2 (RFC 9113 §3.4). As HTTP/1 it
// would be invalid.
bool Http1Connection::is_http2(Bytes bytes) const {
  return requests_ == 0 && server_.options().http2 &&
         text_of(bytes).starts_with("PRI * HTTP/2.0\r\n\r\n");
}

// All input belongs to the new connection.
void Http1Connection::become_http2(ExchangeState& state) {
  state_ = nullptr;
  state.detach_without_callback();
  server_.add_http2(std::move(stream_), std::move(peer_));
  go();
}

std::size_t Http1Connection::take_request(ExchangeState& state) {
  const std::size_t size = state.header().size();
  Framing framing;
  Refusal refusal = state.header().check();
  if (!refusal) refusal = frame_request(state.view(), framing);
  if (!refusal) refusal = state.open(framing, server_);
  if (refusal) {
    refuse(state, refusal);
    return size;
  }
  clear(kInHead);
  server_.unlist(state);
  ++requests_;
  server_.serve(state.make_handle());
  if (state.wire() == this) go_on(state);
  return size;
}

std::size_t Http1Connection::take_body(ExchangeState& state, Bytes bytes) {
  const ExchangeState::Use use(state);
  const std::size_t used =
      state.body().is_chunked() ? take_chunked(state, bytes) : take_sized(state, bytes);
  if (state.wire() == this) go_on(state);
  return used;
}

std::size_t Http1Connection::take_sized(ExchangeState& state, Bytes bytes) {
  const Bytes piece = state.body().split(bytes);
  show_body(state, piece);
  return piece.size();
}

std::size_t Http1Connection::take_chunked(ExchangeState& state, Bytes bytes) {
  const ChunkedDecoder::Step step = state.body().decode(bytes);
  switch (step.state) {
    case ChunkedDecoder::State::data:
      show_body(state, step.data);
      break;
    case ChunkedDecoder::State::end:
      state.end_body();
      break;
    case ChunkedDecoder::State::broken:
      refuse(state, step.refusal);
      break;
    case ChunkedDecoder::State::unfinished:
      break;
  }
  return step.used + step.data.size();
}

void Http1Connection::show_body(ExchangeState& state, Bytes piece) {
  if (!state.pass_on(piece)) refuse(state, IncomingBody::kTooLong);
}

// Responds, unless there was a response, and closes the connection after it.
void Http1Connection::refuse(ExchangeState& state, const Refusal& refusal) {
  set(kClosing);
  clear(kInHead);
  const std::error_code error = error_of(refusal);
  state.refuse(refusal) ? finish(state, error) : lose(state, error);
}

// ---- EOF from the client

void Http1Connection::on_end() {
  set(kClientEnded);
  if (state_ == nullptr) return stream_.close();
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  // The end of the body is reported first, if it was not yet.
  const IncomingBody& body = state.body();
  if (body.is_reading() && body.is_received() && !state.end_body()) return;
  const bool is_cut = has(kInHead) || !body.is_over();
  if (!is_cut) {
    state.tell([](ExchangeHandler& handler) { handler.on_client_end(); });
    if (state.wire() == this) go_on(state);
  } else if (state.response().has_ended()) {
    finish(state, body.is_started() ? lost() : std::error_code());
  } else {
    lose(state, lost());
  }
}

void Http1Connection::on_drained() {
  if (state_ == nullptr || has(kInHead)) {
    clear(kHeld);
    return update_reading();
  }
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  state.on_room();
  if (state.wire() == this) go_on(state);
}

void Http1Connection::on_closed(std::error_code error) {
  const Watch watch(lifetime_);
  if (state_ != nullptr) {
    ExchangeState& state = *std::exchange(state_, nullptr);
    const std::error_code reason = error ? error : lost();
    has(kInHead) ? state.detach_without_callback() : server_.conclude(state, reason, lifetime_);
  }
  if (!watch.is_gone()) go();
}

// ---- the exchange

// Called after user code: handles events that it caused, and saves the state that must outlive the
// callback.
void Http1Connection::go_on(ExchangeState& state) {
  switch (state.next_step(state.body().is_received())) {
    case ExchangeState::Step::end_body:
      if (state.end_body()) go_on(state);
      return;
    case ExchangeState::Step::discard_body:
      return has(kClosing) ? finish(state) : discard(state);
    case ExchangeState::Step::finish:
      return finish(state);
    case ExchangeState::Step::wait:
      return keep(state);
  }
}

void Http1Connection::discard(ExchangeState& state) {
  state.body().discard(server_.loop().now());
  clear(kHeld);
  update_reading();
  go_on(state);
}

// The exchange continues after the callback that delivered it, so the header section is copied.
void Http1Connection::keep(ExchangeState& state) {
  if (!state.header().keep()) return lose(state, system_error(ENOMEM));
  if (server_.list(state)) stream_.set_idle_timeout(Nanos{0});
}

// Returns whether another request may follow this one. Called once, when the response begins, which
// announces the decision; kClosing stores it.
bool Http1Connection::persists(const ExchangeState& state, Status status) const {
  return accepts_requests() && !server_.is_draining() &&
         requests_ < server_.options().max_requests && state.allows_next(status);
}

// The response has ended, and the rest of the body is not needed.
void Http1Connection::finish(ExchangeState& state, std::error_code error) {
  drop_deadline();
  if (server_.unlist(state) && !stream_.set_idle_timeout(server_.options().idle_timeout))
    set(kClosing);
  state_ = nullptr;
  served_at_ = tick_of(server_.loop().now());
  clear(kHeld);
  if (!accepts_requests()) {
    set(kClosing);
    // A client that announced its last request sends nothing more. Other clients may have sent
    // further requests: closing without lingering would reset the connection before they have read
    // the response.
    const bool is_last = !state.body().keeps_alive() || server_.is_draining();
    stream_.close(state.is_over() && is_last && !error ? Linger::no : Linger::yes);
    if (server_.is_draining()) hurry(stream_);
  } else {
    update_reading();
    if (server_.is_draining()) server_.give_notice();
  }
  server_.conclude(state, error, lifetime_);
}

// There can be no response, or no complete one.
void Http1Connection::lose(ExchangeState& state, std::error_code error) {
  const Watch watch(lifetime_);
  state_ = nullptr;
  stream_.abort();
  has(kInHead) ? state.detach_without_callback() : server_.conclude(state, error, lifetime_);
  if (!watch.is_gone()) go();
}

// ---- the server's drain

// Responses announce the drain. A connection that was closed before may still wait for its client.
void Http1Connection::on_drain() {
  if (state_ == nullptr && has(kClosing)) hurry(stream_);
}

// A client that has just connected, or just received a response, may be about to send a request.
bool Http1Connection::is_at_rest() const {
  constexpr std::uint16_t kTicks = 8;
  const std::uint16_t now = tick_of(server_.loop().now());
  return requests_ != 0 && static_cast<std::uint16_t>(now - served_at_) >= kTicks;
}

void Http1Connection::close_if_idle() {
  if (is_at_rest()) close_to_requests();
}

// Closes the connection if it is between two requests.
void Http1Connection::close_to_requests() {
  const bool is_idle = state_ == nullptr && !has(kHeld | kClosing) && stream_.unread().empty();
  if (!is_idle) return;
  set(kClosing);
  stream_.close(Linger::no);
  hurry(stream_);
}

void Http1Connection::abort(std::error_code error) {
  if (state_ != nullptr) {
    const ExchangeState::Use use(*state_);
    return lose(*state_, error);
  }
  stream_.abort();
  go();
}

void Http1Connection::go() {
  server_.forget(*this);
  delete this;
}

// ---- called by the exchange

void Http1Connection::abort(ExchangeState& state) {
  state_ = nullptr;
  server_.conclude_later(state, system_error(ECANCELED));
  stream_.abort();
  go();
}

void Http1Connection::read_body(ExchangeState& state) {
  const IncomingBody& body = state.body();
  if (state.invites_body()) stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
  if (body.is_reading()) clear(kHeld);
  update_reading();
  if (body.is_reading() && body.is_received()) settle_later(state);
}

void Http1Connection::pause(ExchangeState&) { update_reading(); }

bool Http1Connection::set_deadline(Nanos timeout) {
  if (!stream_.set_deadline(timeout)) return false;
  timeout == Nanos{0} ? clear(kHasDeadline) : set(kHasDeadline);
  return true;
}

void Http1Connection::drop_deadline() {
  if (has(kHasDeadline)) set_deadline(Nanos{0});
}

void Http1Connection::settle_later(ExchangeState& state) { server_.settle_later(state); }

void Http1Connection::settle(ExchangeState& state) {
  const ExchangeState::Use use(state);
  state.compress_queued();
  if (state.wire() == this) go_on(state);
}

// ---- timeouts

void Http1Connection::on_tick(ExchangeState& state, Nanos now) {
  const ExchangeState::Use use(state);
  const Nanos head_timeout = server_.options().head_timeout;
  const bool is_late = has(kInHead) && head_timeout > Nanos{0} && state.age(now) >= head_timeout;
  if (is_late) {  // The request may be HEAD, whose response has no body.
    state.header().forget();
    refuse(state, {Status::request_timeout, ""});
  } else if (state.is_body_slow(now)) {
    refuse(state, IncomingBody::kTooSlow);
  } else if (is_stuck(state, now)) {
    lose(state, Error::write_timeout);
  }
}

// True if output is queued and the client reads nothing. The client has as much time for the
// responses before this one as for this one.
bool Http1Connection::is_stuck(const ExchangeState& state, Nanos now) const {
  const Nanos timeout = server_.options().idle_timeout;
  return timeout > Nanos{0} && stream_info(stream_).stalled >= timeout && state.age(now) >= timeout;
}

}  // namespace spate::http
