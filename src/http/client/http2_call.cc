#include "http/client/http2_call.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/client/client_core.h"
#include "http/client/client_http2.h"
#include "http/codec/framing.h"
#include "http/codec/system_error.h"
#include "spate/http/error.h"

namespace spate::http {

namespace {

// The limits of a Stream.
constexpr QueueLimits kLimits;
// The timeout of a tunnel whose server reads nothing, or sends nothing after our side has ended.
constexpr Nanos kPatience{60'000'000'000};

}  // namespace

bool Http2Call::begin(CallState& call, Use use) {
  const bool must_wait =
      call.asks_upgrade() && connection_->session().tunnels() != Http2Tunnels::taken;
  if (!must_wait && !ask(call)) return false;
  if (use == Use::again) set(kIsReused);
  call_ = Ref<CallState>(&call);
  Ref<Http2Call>(this).leak();
  if (must_wait) {
    set(kAwaitsSettings);
    call.hold(*this);
  } else {
    call.attach(*this);
  }
  return true;
}

bool Http2Call::ask(CallState& call) {
  Http2Request request;
  if (!call.begin(request)) return false;
  const bool has_more = call.asks_upgrade() || call.body().content() != Content::none;
  id_ = connection_->session().request(*this, request.head.view(),
                                       has_more ? Http2End::no : Http2End::yes);
  if (id_ <= 0) return id_ = 0, false;
  connection_->count_request();
  return true;
}

std::size_t Http2Call::queued() const { return connection_->queued(); }

// The server's settings state whether it supports upgrades (RFC 8441).
void Http2Call::ask_for_upgrade(CallState& call) {
  clear(kAwaitsSettings);
  if (connection_->session().tunnels() == Http2Tunnels::refused)
    return call.core()->ask_by_http1(call);
  if (ask(call)) return call.attach(*this);
  connection_->take_no_more();
  if (!call.may_ask_again()) return fail(call, system_error(ENOMEM));
  call.core()->repeat(call, CallState::Repeat::after_refusal);
}

// ---- input

void Http2Call::take_head(ResponseHead& head, Http2End end) {
  if (!call_) return;
  const Ref<CallState> call(call_.get());
  set(kHasReceived);
  call->report_upload();
  if (!carries(*call)) return;
  Framing framing;
  if (frame_response(head, call->method(), framing)) return refuse();
  if (is_informational(head.status)) {
    if (end == Http2End::yes || !call->take_informational(head)) refuse();
    return;
  }
  set(kHasHead);
  connection_->note_response();
  // Frames delimit the body. The session checks Content-Length, except for an upgrade.
  if (framing.body == BodyKind::until_end) framing.body = BodyKind::chunked;
  if (end == Http2End::yes) framing.body = BodyKind::none;
  if (call->asks_upgrade()) wake();  // There is no upgrade, so our side of the stream ends.
  call->take_head(head, framing);
  if (end == Http2End::yes) set(kEnded);
  go_on(*call);
}

void Http2Call::take_upgrade(ResponseHead& head, Http2End end) {
  const Ref<Http2Call> self(this);
  const Ref<CallState> call(call_.get());
  set(kHasReceived);
  set(kHasHead);
  connection_->note_response();
  call->take_head(head, {.becomes_tunnel = true});
  if (call->failure()) return fail(*call, call->failure());
  Result<Stream> stream = open_tunnel(*call);
  if (!stream) return fail(*call, stream.error());
  if (end == Http2End::yes) take_end();
  call->core()->upgrade(*call, std::move(*stream));
}

// Replaces the call by a tunnel.
Result<Stream> Http2Call::open_tunnel(CallState& call) {
  auto ends = Stream::memory_pair(call.core()->loop());
  if (!ends) return std::unexpected(ends.error());
  tunnel_.reset(new (std::nothrow) Http2Tunnel(*this, std::move(ends->first), kPatience));
  if (tunnel_ == nullptr) return std::unexpected(system_error(ENOMEM));
  const Ref<Http2Call> own = Ref<Http2Call>::adopt(this);
  call_ = {};
  call.detach();
  return std::move(ends->second);
}

void Http2Call::take_trailer(std::string_view name, std::string_view value) {
  if (!call_) return;
  if (!section_.take(name, value, connection_->head_limits(), call_->trailers)) refuse();
}

void Http2Call::refuse() {
  if (call_) fail(*call_, HttpError::malformed_response);
}

void Http2Call::take_body(Bytes bytes) {
  if (tunnel_ != nullptr) {
    if (!tunnel_->take(bytes)) cut_tunnel();
    return;
  }
  if (!call_) return;  // Not needed any more; the window bounds how much arrives.
  const Ref<CallState> call(call_.get());
  if (!is_within_length(*call, bytes.size())) return refuse();
  std::size_t used = 0;
  const bool is_next = in_.empty() && !has(kShowing) && !call->has_more();
  if (is_next && !call->is_paused()) used = show(*call, bytes);
  if (!carries(*call)) return;
  if (!in_.append(bytes.subspan(used))) return fail(*call, system_error(ENOMEM));
  go_on(*call);
}

// The session does not check the length of the response to a CONNECT, because a tunnel may follow.
bool Http2Call::is_within_length(CallState& call, std::size_t size) {
  if (!call.asks_upgrade() || call.framing.body == BodyKind::chunked) return true;
  if (size > call.body_left) return false;
  call.body_left -= size;
  return true;
}

void Http2Call::take_end() {
  set(kEnded);
  if (tunnel_ != nullptr) return tunnel_->take_end();
  if (!call_) return;
  const Ref<CallState> call(call_.get());
  go_on(*call);
}

// Updates the window for used bytes.
std::size_t Http2Call::show(CallState& call, Bytes bytes) {
  const std::size_t used = call.show(bytes);
  if (carries(call)) credit(used);
  return used;
}

void Http2Call::credit(std::size_t size) {
  if (connection_ == nullptr || size == 0) return;
  connection_->session().credit(id_, size);
  connection_->flush_later();
}

// More bytes arrive meanwhile if the handler runs the loop.
void Http2Call::show_kept(CallState& call) {
  const auto may_show = [&] { return carries(call) && !call.failure() && !call.is_paused(); };
  set(kShowing);
  while (may_show() && !in_.empty()) {
    Buffer kept = std::move(in_);
    while (may_show() && !kept.empty()) kept.consume(show(call, kept.front()));
    if (!carries(call)) break;
    kept.append(std::move(in_));
    in_ = std::move(kept);
  }
  clear(kShowing);
}

void Http2Call::show_more() {
  const Ref<Http2Call> self(this);
  const Ref<CallState> call(call_.get());
  if (call->has_more()) call->show_more();
  if (carries(*call) && !call->has_more() && !has(kShowing)) show_kept(*call);
  go_on(*call);
}

// Called after user code. The body of a redirect is not awaited.
void Http2Call::go_on(CallState& call) {
  if (!carries(call)) return;
  if (call.failure()) return fail(call, call.failure());
  if (call.is_redirecting()) return finish(call);
  const bool is_shown = in_.empty() && !has(kShowing) && !call.has_more() && !call.is_paused();
  if (!has(kEnded) || !is_shown) return;
  const bool is_short = call.asks_upgrade() && call.body_left > 0;
  is_short ? fail(call, HttpError::response_truncated) : finish(call);
}

// ---- sending

void Http2Call::send_body() {
  if (call_->body().waiting() > kLimits.high) set(kIsFull);
  wake();
}

void Http2Call::wake() {
  if (connection_ == nullptr || has(kIsClosed)) return;
  if (has(kIsAwaited)) connection_->session().wake(id_);
  clear(kIsAwaited);
  connection_->flush_later();
}

Http2Piece Http2Call::next_piece(std::size_t most) {
  if (tunnel_ != nullptr) {
    const Http2Piece piece = tunnel_->next_piece(most);
    if (piece.size == 0 && !piece.is_last) set(kIsAwaited);
    return piece;
  }
  if (asks_upgrade() && !has(kHasHead)) return set(kIsAwaited), Http2Piece();
  if (!call_ || call_->awaits_continue()) return set(kIsAwaited), Http2Piece();
  const RequestBody& body = call_->body();
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(most, body.ready()));
  Http2Piece piece = {.size = size, .is_last = body.is_last(size)};
  if (size == 0 && !piece.is_last) set(kIsAwaited);
  if (!piece.is_last || body.trailers().empty()) return piece;
  trailers_.reset(new (std::nothrow) Http2Fields);
  if (trailers_ == nullptr || !trailers_->reserve(body.trailers().size()))
    return give_up(system_error(ENOMEM)), Http2Piece();
  trailers_->add_all(body.trailers());
  piece.trailers = trailers_->view();
  return piece;
}

void Http2Call::give_up(std::error_code error) {
  error_ = error;
  connection_->session().reset(id_, Http2Code::internal_error);
}

void Http2Call::take(std::span<std::byte> target) {
  if (tunnel_ != nullptr) return tunnel_->take(target);
  call_->body().take(target);
  on_piece_sent();
}

bool Http2Call::take(std::size_t size, Buffer& target) {
  if (tunnel_ != nullptr) return tunnel_->take(size, target);
  const bool is_taken = call_->body().take(size, target);
  on_piece_sent();
  return is_taken;
}

void Http2Call::on_piece_sent() {
  if (!has(kIsFull) || call_->body().waiting() > kLimits.low) return;
  clear(kIsFull);
  call_->core()->settle_later(*call_);
}

void Http2Call::on_end_sent() {
  set(kEndSent);
  if (tunnel_ != nullptr) tunnel_->on_end_sent();
}

// ---- the end

// A stream that closes with NO_ERROR before the response has ended: the response was shorter than
// declared.
void Http2Call::on_stream_closed(Http2Code code, By by) {
  set(kIsClosed);
  if (tunnel_ != nullptr) tunnel_->on_stream_closed(code);
  if (code == Http2Code::refused_stream && !has(kHasReceived)) set(kIsRefused);
  if (error_) return;
  if (code == Http2Code::no_error) {
    error_ = HttpError::response_truncated;
  } else if (by == By::us) {
    error_ = HttpError::malformed_response;
  } else {
    error_ = system_error(ECONNRESET);
  }
}

bool Http2Call::has_news() const {
  if (has(kAwaitsSettings)) return connection_->session().tunnels() != Http2Tunnels::unknown;
  return has(kIsClosed) && !has(kIsReported);
}

void Http2Call::tell() {
  if (has(kAwaitsSettings)) return ask_for_upgrade(*call_);
  set(kIsReported);
  if (tunnel_ != nullptr) return close_tunnel();
  if (!call_) return connection_->forget(*this);
  if (has(kEnded)) return;
  if (has(kIsRefused) && call_->may_ask_again())
    return call_->core()->repeat(*call_, CallState::Repeat::after_refusal);
  fail(*call_, error_);
}

void Http2Call::cut_tunnel() {
  if (connection_ == nullptr || has(kIsClosed | kIsCut)) return;
  set(kIsCut);
  connection_->session().reset(id_, Http2Code::cancel);
  connection_->flush_later();
}

void Http2Call::close_tunnel() {
  tunnel_.reset();
  ClientHttp2& connection = *connection_;
  connection.forget(*this);
  connection.note_free();
}

void Http2Call::repeat() { call_->core()->repeat(*call_, CallState::Repeat::after_loss); }

void Http2Call::lose(std::error_code error) {
  const bool is_silent = !has(kHasReceived) && error == HttpError::response_truncated;
  fail(*call_, is_silent ? system_error(ECONNRESET) : error);
}

void Http2Call::finish(CallState& call) {
  if (!call.check_end()) return fail(call, call.failure());
  const Ref<Http2Call> self(this);
  ClientCore& core = *call.core();
  const Ref<CallState> keep = let_call_go();
  core.complete(call);
}

void Http2Call::fail(CallState& call, std::error_code error) {
  call.core()->fail(call, error);  // This calls abandon().
}

void Http2Call::note_late() {
  if (connection_ != nullptr) connection_->note_late(*call_);
}

void Http2Call::abandon() {
  const Ref<Http2Call> self(this);
  const Ref<CallState> keep = let_call_go();
}

// Frees the stream's slot before the callback, so that the user's next call can use it.
Ref<CallState> Http2Call::let_call_go() {
  const Ref<Http2Call> own = Ref<Http2Call>::adopt(this);
  Ref<CallState> call = std::move(call_);
  call->detach();
  in_.clear();
  if (connection_ == nullptr) return call;
  const bool was_asked = id_ != 0;
  const bool is_over = has(kIsClosed) || (has(kEnded) && has(kEndSent));
  if (was_asked && !is_over) connection_->give_up(id_);
  ClientHttp2& connection = *connection_;
  if (has(kIsReported) || !was_asked) connection.forget(*this);
  connection.note_free();
  return call;
}

}  // namespace spate::http
