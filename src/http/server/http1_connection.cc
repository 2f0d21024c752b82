// Http1Connection's way in: heads and bodies, and the life of an exchange. Answers are written in
// http1_answer.cc.
#include "http/server/http1_connection.h"
#include "http/codec/system_error.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/proxy_protocol.h"
#include "http/codec/request_check.h"
#include "http/server/server_core.h"
#include "spate/error.h"

namespace spate::http {

namespace {

// For somebody, or for nobody.
bool takes_body(const ExchangeState& state) {
  return state.is_reading() || state.body == ExchangeState::Body::discarded;
}

// All of the body has been received, and that is to be told.
bool is_at_end(const ExchangeState& state) {
  return state.framing.body != BodyKind::chunked && state.body_left == 0;
}

// Of a body that nobody wants, so that the connection may be used again.
constexpr std::uint64_t kMostDiscarded = 256 * 1024;

}  // namespace

Http1Connection::Http1Connection(ServerCore& server, Stream stream)
    : server_(server), stream_(std::move(stream)) {}

Http1Connection::~Http1Connection() {
  if (state_ != nullptr) std::exchange(state_, nullptr)->detach_unheard();
}

void Http1Connection::start() {
  if (server_.expects_proxy_header(stream_)) {
    set(kInProxyHeader);
    stream_.set_deadline(server_.options().head_timeout);
  }
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
  return takes_body(*state_) && !is_at_end(*state_) ? take_body(*state_, bytes) : hold();
}

std::size_t Http1Connection::take_proxy_header(Bytes bytes) {
  const ProxyHeader header = parse_proxy_header(bytes);
  if (header.state == ProxyHeader::State::unfinished) return 0;
  const bool is_named = header.source.family() != Address::Family::none;
  if (is_named) forwarded_.reset(new (std::nothrow) Address(header.source));
  if (header.state == ProxyHeader::State::broken || (is_named && forwarded_ == nullptr)) {
    server_.count_refused();
    this->abort(system_error(EBADMSG));
    return bytes.size();
  }
  clear(kInProxyHeader);
  stream_.set_deadline(Nanos{0});
  return header.size;
}

// What has come is for the next exchange, or for when somebody asks.
std::size_t Http1Connection::hold() {
  set(kHeld);
  update_reading();
  return 0;
}

void Http1Connection::update_reading() {
  const bool is_paused = has(kHeld) || (state_ != nullptr && state_->is_paused());
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
  const Parsed parsed = parse_request(bytes, state.looked_at, server_.head_limits(), state.head);
  if (parsed.state == Parsed::State::whole) {
    state.head_text = reinterpret_cast<const char*>(bytes.data());
    return take_request(state);
  }
  if (parsed.state == Parsed::State::broken) {
    if (is_http2(bytes)) return become_http2(state), 0;
    refuse(state, parsed.refusal);
    return bytes.size();
  }
  state.looked_at = parsed.looked_at;
  server_.list(state);
  return 0;
}

// What comes first from those who know that we speak it (RFC 9113 §3.4); of HTTP/1 it is broken.
bool Http1Connection::is_http2(Bytes bytes) const {
  return requests_ == 0 && server_.options().http2 &&
         text_of(bytes).starts_with("PRI * HTTP/2.0\r\n\r\n");
}

// All that has come is the other's.
void Http1Connection::become_http2(ExchangeState& state) {
  state_ = nullptr;
  state.detach_unheard();
  server_.add_http2(std::move(stream_), std::move(forwarded_));
  go();
}

std::size_t Http1Connection::take_request(ExchangeState& state) {
  const std::size_t size = state.head.size;
  Framing framing;
  Refusal refusal = check_request(state.head, state.target);
  if (!refusal) refusal = frame_request(state.head, framing);
  if (!refusal && framing.size > server_.options().max_body)
    refusal = {Status::content_too_large, "the body is too long"};
  if (refusal) {
    refuse(state, refusal);
    return size;
  }
  clear(kInHead | kAskedBody);
  server_.unlist(state);
  ++requests_;
  state.open(framing, server_.loop().now());
  state.max_body = server_.options().max_body;
  state.compression = server_.options().compression;
  server_.serve(state.make_handle());
  if (state.wire() == this) go_on(state);
  return size;
}

std::size_t Http1Connection::take_body(ExchangeState& state, Bytes bytes) {
  const ExchangeState::Use use(state);
  const std::size_t used = state.framing.body == BodyKind::chunked ? take_chunked(state, bytes)
                                                                   : take_sized(state, bytes);
  if (state.wire() == this) go_on(state);
  return used;
}

std::size_t Http1Connection::take_sized(ExchangeState& state, Bytes bytes) {
  const Bytes piece = bytes.first(std::min<std::uint64_t>(bytes.size(), state.body_left));
  state.body_left -= piece.size();
  show_body(state, piece);
  return piece.size();
}

std::size_t Http1Connection::take_chunked(ExchangeState& state, Bytes bytes) {
  const auto step = state.chunks.next(bytes, state.trailers);
  switch (step.state) {
    case ChunkedDecoder::State::data:
      state.chunks.take(step.data.size());
      show_body(state, step.data);
      break;
    case ChunkedDecoder::State::end:
      end_body(state, state.trailers);
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
  state.received += piece.size();
  state.last_arrival = server_.loop().now();
  if (state.received > state.max_body)
    return refuse(state, {Status::content_too_large, "the body is too long"});
  if (state.body == ExchangeState::Body::discarded) return;
  state.tell([piece](ExchangeHandler& handler) { handler.on_body(piece); });
}

// False if that was the end of the exchange, or of this.
bool Http1Connection::end_body(ExchangeState& state, const FieldsView& trailers) {
  using Body = ExchangeState::Body;
  if (std::exchange(state.body, Body::ended) == Body::discarded) return true;
  return state.tell([&](ExchangeHandler& handler) { handler.on_body_end(trailers); });
}

// The connection ends behind the answer to that, if there is none yet.
void Http1Connection::refuse(ExchangeState& state, const Refusal& refusal) {
  server_.count_refused();
  set(kClosing);
  clear(kInHead);
  state.respond_refusal(refusal);
  const bool is_answered = state.answer() == ExchangeState::Answer::ended;
  is_answered ? finish(state, error_of(refusal)) : lose(state, error_of(refusal));
}

// ---- the client's end

void Http1Connection::on_end() {
  set(kClientEnded);
  if (state_ == nullptr) return stream_.close();
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  if (state.is_reading() && is_at_end(state) && !end_body(state, {})) return;  // Not told yet.
  const bool is_cut = has(kInHead) || (state.body != ExchangeState::Body::none &&
                                       state.body != ExchangeState::Body::ended);
  if (!is_cut) {
    state.tell([](ExchangeHandler& handler) { handler.on_client_end(); });
    if (state.wire() == this) go_on(state);
  } else if (state.answer() == ExchangeState::Answer::ended) {
    finish(state);
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
  state.tell([](ExchangeHandler& handler) { handler.on_drained(); });
  if (state.wire() == this) go_on(state);
}

void Http1Connection::on_closed(std::error_code error) {
  const Watch watch(lifetime_);
  if (state_ != nullptr) {
    ExchangeState& state = *std::exchange(state_, nullptr);
    const ExchangeState::Use use(state);
    const std::error_code reason = error ? error : lost();
    if (!has(kInHead)) server_.note_end(state, reason);
    state.detach(reason);
  }
  if (!watch.is_gone()) go();
}

// ---- the exchange

// After user code: what it has brought to an end, and what is to be kept.
void Http1Connection::go_on(ExchangeState& state) {
  if (takes_body(state) && is_at_end(state)) {
    if (end_body(state, {})) go_on(state);
    return;
  }
  if (state.answer() == ExchangeState::Answer::ended) {
    if (state.is_over() || !may_discard(state)) return finish(state);
    if (state.body == ExchangeState::Body::waiting) return discard(state);
  }
  keep(state);
}

void Http1Connection::discard(ExchangeState& state) {
  state.discard_body();
  clear(kHeld);
  update_reading();
  go_on(state);
}

// It goes on beyond the callback that it came in.
void Http1Connection::keep(ExchangeState& state) {
  if (!state.keep_head()) return lose(state, system_error(ENOMEM));
  if (server_.list(state)) stream_.set_idle_timeout(Nanos{0});
}

// A client that was not told to send its body may send it, or may not.
bool Http1Connection::may_discard(const ExchangeState& state) const {
  if (is_last(state)) return false;
  if (state.framing.expects_continue && !has(kAskedBody) && state.received == 0) return false;
  return state.body_left <= kMostDiscarded && state.received <= kMostDiscarded;
}

bool Http1Connection::is_last(const ExchangeState& state) const {
  return has(kClosing | kClientEnded) || !state.framing.keeps_alive || server_.is_draining() ||
         requests_ >= server_.options().max_requests;
}

// The answer has ended, and what is left of the body is of no interest.
void Http1Connection::finish(ExchangeState& state, std::error_code error) {
  bool closes = is_last(state) || !state.is_over();
  if (state.has_deadline) stream_.set_deadline(Nanos{0});
  if (server_.unlist(state) && !stream_.set_idle_timeout(server_.options().idle_timeout))
    closes = true;
  server_.note_end(state, error);
  state_ = nullptr;
  clear(kHeld);
  if (closes) {
    set(kClosing);
    const bool is_clients_wish = state.is_over() && !state.framing.keeps_alive && !error;
    stream_.close(is_clients_wish ? Linger::no : Linger::yes);
  } else {
    update_reading();
  }
  state.detach(error);
}

// The answer cannot be given, or not whole.
void Http1Connection::lose(ExchangeState& state, std::error_code error) {
  const Watch watch(lifetime_);
  if (!has(kInHead)) server_.note_end(state, error);
  state_ = nullptr;
  stream_.abort();
  state.detach(error);
  if (!watch.is_gone()) go();
}

// Between two requests, if none has begun.
void Http1Connection::close_to_requests() {
  if (state_ == nullptr) stream_.close();
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

// ---- what the exchange asks for

void Http1Connection::abort(ExchangeState& state) {
  server_.note_end(state, system_error(ECANCELED));
  state_ = nullptr;
  stream_.abort();
  state.detach_unheard();
  go();
}

void Http1Connection::read_body(ExchangeState& state) {
  const bool is_awaited = state.framing.expects_continue && !has(kAskedBody) &&
                          state.received == 0 && state.answer() == ExchangeState::Answer::none;
  if (is_awaited) {
    set(kAskedBody);
    stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  if (state.is_reading()) clear(kHeld);
  update_reading();
  if (state.is_reading() && is_at_end(state)) settle_later(state);
}

void Http1Connection::pause(ExchangeState&) { update_reading(); }

void Http1Connection::settle_later(ExchangeState& state) { server_.settle_later(state); }

void Http1Connection::settle(ExchangeState& state) {
  const ExchangeState::Use use(state);
  go_on(state);
}

// ---- deadlines

void Http1Connection::on_tick(ExchangeState& state, Nanos now) {
  const ExchangeState::Use use(state);
  const Nanos head_timeout = server_.options().head_timeout;
  const bool is_late = has(kInHead) && head_timeout > Nanos{0} && now - state.began >= head_timeout;
  if (is_late || is_slow(state, now)) {
    refuse(state, {Status::request_timeout, "the request came too slowly"});
  } else if (is_stuck(state, now)) {
    lose(state, Error::write_timeout);
  }
}

bool Http1Connection::is_slow(const ExchangeState& state, Nanos now) const {
  const ServerOptions& options = server_.options();
  return !has(kInHead) && state.is_body_slow(options.body_timeout, options.min_body_rate, now);
}

// Something is to be sent, and the client takes nothing.
bool Http1Connection::is_stuck(ExchangeState& state, Nanos now) const {
  const std::size_t queued = stream_.queued();
  const std::uint64_t gone = state.sent() - std::min<std::uint64_t>(queued, state.sent());
  if (queued == 0 || gone != state.taken) {
    state.taken = gone;
    state.last_progress = now;
  }
  const Nanos timeout = server_.options().idle_timeout;
  return timeout > Nanos{0} && now - state.last_progress >= timeout;
}

}  // namespace spate::http
