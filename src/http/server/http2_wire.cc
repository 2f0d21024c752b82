#include "http/server/http2_wire.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/exchange_state.h"
#include "http/server/http2_connection.h"
#include "http/server/server_core.h"
#include "spate/error.h"

namespace spate::http {

namespace {

// A client has this long to read a response before its upload is reset. Some clients lose the
// response if the reset arrives together with its end.
constexpr Nanos kUploadGrace{1'000'000'000};

}  // namespace

Http2Wire::Http2Wire(Http2Connection& connection, std::int32_t id, ExchangeState& state)
    : connection_(connection), state_(&state), out_(connection.queued()), id_(id) {}

Http2Wire::~Http2Wire() {
  tunnel_.reset();
  if (state_ != nullptr) std::exchange(state_, nullptr)->detach_without_callback();
}

ServerCore& Http2Wire::server() const { return connection_.server(); }
Http2Session& Http2Wire::session() const { return connection_.session(); }
Address Http2Wire::peer() const { return connection_.peer(); }
bool Http2Wire::is_local() const { return connection_.is_local(); }
std::optional<TlsInfo> Http2Wire::tls() const { return connection_.tls(); }

// ---- input

void Http2Wire::take_head(const Refusal& refusal, Http2End end) {
  set(kHasHead);
  if (end == Http2End::yes) set(kClientEnded);
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  start_request(state, refusal, end);
}

bool Http2Wire::hold(Http2End end) {
  if (!state_->header().keep()) return lose(system_error(ENOMEM)), false;
  set(kHasHead);
  set(kIsHeld);
  if (end == Http2End::yes) {
    set(kClientEnded);
    set(kHasNoBody);
  }
  return true;
}

void Http2Wire::take_held() {
  clear(kIsHeld);
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  start_request(state, trailers_refusal(), has(kHasNoBody) ? Http2End::yes : Http2End::no);
}

void Http2Wire::start_request(ExchangeState& state, const Refusal& refusal, Http2End end) {
  if (const Refusal found = refusal ? refusal : check(state, end)) return refuse(state, found);
  server().serve(state.make_handle());
  if (state.wire() == this) go_on(state);
}

// The session delimits the body by frames, and checks Content-Length.
Refusal Http2Wire::check(ExchangeState& state, Http2End end) {
  const RequestView& request = state.view();
  if (const Refusal refusal = state.header().check()) return refusal;
  if (state.target().form == RequestTarget::Form::absolute)
    return bad_request(":path has another host");
  Framing framing;
  if (const Refusal refusal = frame_request(request, framing)) return refusal;
  if (framing.asks_upgrade && framing.body != BodyKind::none)
    return bad_request("CONNECT with a body");
  const FieldsView& fields = request.fields;
  const bool asks_tunnel = request.method == Method::connect || framing.asks_upgrade;
  if (end == Http2End::no && !asks_tunnel) {
    if (!fields.contains(FieldId::content_length)) framing.body = BodyKind::chunked;
    framing.expects_continue = fields.contains(FieldId::expect);  // Also if the body is empty.
  }
  return state.open(framing, server());
}

void Http2Wire::take_trailer(std::string_view name, std::string_view value) {
  if (state_ == nullptr) return;
  if (!state_->body().add_trailer(section_, name, value, server().head_limits())) set(kIsTooLong);
}

void Http2Wire::take_body(Bytes bytes) {
  if (tunnel_ != nullptr) {
    if (!tunnel_->take(bytes)) cut_tunnel();
    return;
  }
  if (state_ == nullptr) {
    discarded_ += bytes.size();
    return credit_discarded();
  }
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  // Kept bytes are passed on first. The window is enlarged only for bytes that were passed on, so
  // it bounds the memory.
  if (!state.body().is_reading() || !in_.empty() || has(kShowing)) {
    if (!in_.append(bytes)) reset(Http2Code::internal_error, system_error(ENOMEM));
  } else if (show(state, bytes)) {
    session().credit(id_, bytes.size());
    go_on(state);
  }
}

// Returns false if the exchange is over; this may be destroyed then.
bool Http2Wire::show(ExchangeState& state, Bytes bytes) {
  if (!state.pass_on(bytes)) refuse(state, IncomingBody::kTooLong);
  return state.wire() == this;
}

void Http2Wire::show_kept(ExchangeState& state) {
  if (has(kShowing)) return;
  while (state.body().is_reading() && !in_.empty()) {
    set(kShowing);
    // Bytes that arrive meanwhile are appended to in_, and belong after these.
    Buffer kept = std::move(in_);
    while (state.body().is_reading() && !kept.empty()) {
      const Bytes piece = kept.front();
      if (!show(state, piece)) return;
      session().credit(id_, piece.size());
      kept.consume(piece.size());
    }
    clear(kShowing);
    kept.append(std::move(in_));
    in_ = std::move(kept);
  }
}

void Http2Wire::take_end() {
  set(kClientEnded);
  if (tunnel_ != nullptr) return tunnel_->take_end();
  wake_client();
  if (state_ == nullptr) return;
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  if (has(kIsHeld)) return;
  if (const Refusal refusal = trailers_refusal()) return refuse(state, refusal);
  go_on(state);
}

// If an upload ends after its response, its stream closes without a further frame. curl 7.88
// notices that only when another frame arrives, so a PING is sent.
void Http2Wire::wake_client() {
  if (!has(kEndSent)) return;
  session().ping();
  connection_.flush_later();
}

Refusal Http2Wire::trailers_refusal() const {
  if (!has(kIsTooLong)) return {};
  return {Status::request_header_fields_too_large, "the trailers are too long"};
}

void Http2Wire::take_client_end() {
  set(kHasHeardEnd);
  if (is_uploading()) return reset(Http2Code::no_error, {});
  if (!has(kClientEnded)) return state_ == nullptr ? cut_tunnel() : lose(lost());
  if (state_ == nullptr || has(kIsHeld)) return;
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  if (state.tell([](ExchangeHandler& handler) { handler.on_client_end(); })) go_on(state);
}

void Http2Wire::refuse(ExchangeState& state, const Refusal& refusal) {
  const std::error_code error = error_of(refusal);
  state.refuse(refusal) ? finish(state, error) : lose(error);
}

// ---- the exchange

// Called after user code: handles events that it caused, and saves the state that must outlive the
// callback.
void Http2Wire::go_on(ExchangeState& state) {
  const bool is_received = has(kClientEnded) && in_.empty() && !has(kShowing);
  switch (state.next_step(is_received)) {
    case ExchangeState::Step::end_body:
      if (state.end_body()) go_on(state);
      return;
    case ExchangeState::Step::discard_body:  // The stream outlives the exchange.
    case ExchangeState::Step::finish:
      return finish(state);
    case ExchangeState::Step::wait:
      return keep(state);
  }
}

// The exchange continues after the callback that delivered it, so the header section is copied.
void Http2Wire::keep(ExchangeState& state) {
  if (!state.header().keep()) return lose(system_error(ENOMEM));
  server().list(state);
}

// The response has ended, and the rest of the body is not needed. The client may send it until
// check_upload() resets the stream.
void Http2Wire::finish(ExchangeState& state, std::error_code error) {
  last_progress_ = server().loop().now();
  discarded_ = in_.size();
  let_go(state, error);
}

// curl 7.88 fails if a response comes first and its window then stays closed. The window bounds an
// upload until the response was sent.
void Http2Wire::credit_discarded() {
  if (is_uploading()) credit(std::exchange(discarded_, 0));
}

void Http2Wire::lose(std::error_code error) {
  reset(Http2Code::internal_error, error);
  let_go(*state_, error);
}

void Http2Wire::let_go(ExchangeState& state, std::error_code error) {
  const bool is_started = has(kHasHead) && !has(kIsHeld);
  if (has(kIsHeld)) connection_.forget_held(*this);
  clear(kIsHeld);
  in_.clear();
  leave_exchange();
  is_started ? server().conclude(state, error, connection_.lifetime())
             : state.detach_without_callback();
}

// A stream that was kept for its exchange may be destroyed now.
void Http2Wire::leave_exchange() {
  deadline_.reset();
  state_ = nullptr;
  credit_discarded();
  if (has(kIsClosed)) connection_.note_news();
  connection_.flush_later();
}

void Http2Wire::reset(Http2Code code, std::error_code error) {
  if (!is_writable()) return;
  set(kIsReset);
  error_ = error;
  out_.clear();
  session().reset(id_, code);
  connection_.flush_later();
}

void Http2Wire::abort(ExchangeState& state) {
  leave_exchange();
  reset(Http2Code::internal_error, {});
  server().conclude_later(state, system_error(ECANCELED));
}

void Http2Wire::settle_later(ExchangeState& state) { server().settle_later(state); }

void Http2Wire::settle(ExchangeState& state) { connection_.settle(*this, state); }

void Http2Wire::settle_now(ExchangeState& state) {
  const ExchangeState::Use use(state);
  state.compress_queued();
  if (state.wire() == this) show_kept(state);
  if (state.wire() == this) go_on(state);
}

// If the stream has closed, this is the last call.
void Http2Wire::tell() {
  clear(kIsDrained);
  if (state_ == nullptr) return;
  ExchangeState& state = *state_;
  const ExchangeState::Use use(state);
  if (is_gone()) return let_go(state, error_ ? error_ : lost());
  state.on_room();
  if (state.wire() == this) go_on(state);
}

void Http2Wire::read_body(ExchangeState& state) {
  const bool has_arrived = has(kClientEnded) || !in_.empty();
  if (!has_arrived && state.invites_body()) inform(state, {.status = Status::continue_});
  if (state.body().is_reading() && (!in_.empty() || has(kClientEnded))) settle_later(state);
}

bool Http2Wire::set_deadline(Nanos timeout) {
  deadline_.reset();
  if (timeout == Nanos{0}) return true;
  deadline_.reset(new (std::nothrow)
                      Timer(server().loop(), [this] { lose(std::error_code(Error::deadline)); }));
  return deadline_ != nullptr && deadline_->start(timeout);
}

void Http2Wire::on_tick(ExchangeState& state, Nanos now) {
  const ExchangeState::Use use(state);
  if (state.is_body_slow(now)) refuse(state, IncomingBody::kTooSlow);
}

void Http2Wire::check_upload(Nanos now) {
  if (is_uploading() && now - last_progress_ >= kUploadGrace) reset(Http2Code::no_error, {});
}

void Http2Wire::check_progress(Nanos timeout, Nanos now) {
  if (!out_.empty() && now - last_progress_ >= timeout)
    reset(Http2Code::cancel, Error::write_timeout);
}

}  // namespace spate::http
