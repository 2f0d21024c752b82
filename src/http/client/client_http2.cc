#include "http/client/client_http2.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <ranges>
#include <utility>

#include "http/client/client_core.h"
#include "http/client/origin.h"
#include "http/codec/system_error.h"
#include "spate/http/error.h"
#include "spate/named_callback.h"

namespace spate::http {

namespace {

// How long a live server may take to acknowledge a PING.
constexpr Nanos kRespondsWithin = std::chrono::seconds(1);

Http2Call& call_of(Http2Stream& stream) { return static_cast<Http2Call&>(stream); }

// The session guarantees three digits, the first of which may be 0.
Status status_of(std::string_view text) {
  int code = 0;
  for (const char digit : text) code = code * 10 + (digit - '0');
  return static_cast<Status>(code);
}
bool has_class(Status status) { return code_of(status) >= 100; }
// The session passes on no bytes after a 204, so it cannot begin a tunnel.
bool lets_bytes_through(Status status) { return status != Status::no_content; }

}  // namespace

ClientHttp2::ClientHttp2(Origin& origin, Stream stream)
    : ClientConnection(origin, std::move(stream)),
      limits_(origin.core().head_limits()),
      flush_(origin.core().loop(), named<Timer, ActiveKind::http_client>([this] { flush(); })),
      heard_(origin.core().tickets()),
      heard_at_(now()) {}

ClientHttp2::~ClientHttp2() = default;

bool ClientHttp2::start() {
  const Http2Engine* engine = origin_->core().options().http2.engine();
  session_ = engine->make_client(*this, limits_.head);
  if (session_ == nullptr) return false;
  head_.version = Version::http_2;
  most_calls_ = session_->max_streams();
  stream_.start(*this);
  flush_later();
  return true;
}

// ---- calls

bool ClientHttp2::has_room() const {
  return origin_ != nullptr && !is_last_ && !frames_.is_broken() && stream_.is_writable() &&
         calls_ < session_->max_streams();
}

bool ClientHttp2::carry(CallState& call) {
  if (is_asking() && now() - asked_at_ >= kRespondsWithin) take_no_more();
  if (!has_room()) return false;
  Ref<Http2Call> stream(new (std::nothrow) Http2Call(*this));
  const auto use = has_responded_ ? Http2Call::Use::again : Http2Call::Use::first;
  if (!stream || !stream->begin(call, use)) return take_no_more(), false;
  wake();
  ++calls_;
  if (stream->has_news()) has_news_ = true;
  streams_.push_back(std::move(stream));
  flush_later();
  return true;
}

void ClientHttp2::count_request() {
  origin_->core().count_request(std::exchange(has_carried_, true) || is_idle());
}

// A connection that takes no more calls is not kept when idle.
void ClientHttp2::take_no_more() {
  is_last_ = true;
  kept_for_ = Nanos{0};
}

void ClientHttp2::note_late(const CallState& call) {
  if (heard_ < call.begun) take_no_more();
}

// Sends a PING to detect a dead server. Most calls are cancelled early for other reasons, so a
// server that was heard from within the last second is not asked.
void ClientHttp2::give_up(std::int32_t id) {
  session_->reset(id, Http2Code::cancel);
  if (!is_asking() && now() - heard_at_ >= kRespondsWithin && session_->ping()) asked_at_ = now();
}

Nanos ClientHttp2::now() const { return origin_->core().loop().now(); }

void ClientHttp2::note_free() {
  --calls_;
  flush_later();
  if (origin_ != nullptr && !origin_->core().is_closed()) origin_->note_room(*this);
}

void ClientHttp2::forget(Http2Call& stream) {
  const auto at = std::ranges::find(streams_, &stream, &Ref<Http2Call>::get);
  if (at == streams_.end()) return;
  const Ref<Http2Call> keep = std::move(*at);
  streams_.erase(at);
}

// Inside the session nothing can be sent.
void ClientHttp2::leave(Ending ending) {
  wake();
  origin_ = nullptr;
  flush_.stop();
  for (const Ref<Http2Call>& stream : streams_) stream->leave_connection();
  if (ending == Ending::graceful && !is_in_session_ && session_ != nullptr &&
      stream_.is_writable()) {
    if (!is_last_) session_->refuse_streams(Http2Code::no_error);
    send_frames();
  }
  ending == Ending::graceful ? stream_.close() : stream_.abort();
}

// ---- StreamHandler

std::size_t ClientHttp2::on_data(Bytes bytes) {
  const Ref<ClientHttp2> self(this);
  if (origin_ != nullptr) note_heard();
  is_in_session_ = is_receiving_ = true;
  const bool is_good = session_->receive(bytes);
  is_in_session_ = is_receiving_ = false;
  if (origin_ == nullptr) return bytes.size();
  is_good ? flush() : fail(Http2Code::enhance_your_calm, HttpError::malformed_response);
  if (origin_ != nullptr) note_settings();
  return bytes.size();
}

void ClientHttp2::note_heard() {
  heard_ = origin_->core().tickets();
  heard_at_ = now();
}

void ClientHttp2::note_settings() {
  const std::uint32_t most = session_->max_streams();
  if (std::exchange(most_calls_, most) != most) origin_->note_room(*this);
}

void ClientHttp2::on_end() { lose(Ending::graceful, HttpError::response_truncated); }

void ClientHttp2::on_closed(std::error_code error) {
  forget_stream();
  lose(Ending::reset, error ? error : std::error_code(HttpError::response_truncated));
}

// Sends the reason to the server, and reads nothing more.
void ClientHttp2::fail(Http2Code code, std::error_code error) {
  is_last_ = true;
  session_->refuse_streams(code);
  send_frames();
  lose(Ending::graceful, error);
}

// Leaves the pool before any call is repeated, or that would get the same connection again. The
// oldest call is repeated first.
void ClientHttp2::lose(Ending ending, std::error_code error) {
  const Ref<ClientHttp2> self(this);
  const std::vector<Ref<Http2Call>> streams = std::move(streams_);
  for (const Ref<Http2Call>& stream : streams) stream->leave_connection();
  calls_ = 0;
  drop(ending);
  for (const Ref<Http2Call>& stream : std::views::reverse(streams))
    if (stream->is_lost() && stream->may_repeat()) stream->repeat();
  for (const Ref<Http2Call>& stream : streams)
    if (stream->is_lost()) stream->lose(error);
}

// ---- sending

void ClientHttp2::flush_later() {
  if (is_in_session_ || origin_ == nullptr) return;
  is_unsent_ = true;
  if (!is_busy_ && !flush_.is_active() && !flush_.is_pending() && !flush_.start(Nanos{0}))
    flush_.feed();
}

void ClientHttp2::flush() {
  is_unsent_ = true;
  if (is_busy_ || is_in_session_) return;
  const Ref<ClientHttp2> self(this);
  is_busy_ = true;
  while (origin_ != nullptr && (std::exchange(is_unsent_, false) || has_news_)) {
    send_frames();
    report_closed_streams();
  }
  is_busy_ = false;
  if (origin_ == nullptr) return;
  if (frames_.is_broken()) return lose(Ending::reset, system_error(ECONNRESET));
  if (is_flooded_) return fail(Http2Code::enhance_your_calm, HttpError::malformed_response);
  if (!session_->is_over()) return;
  lose(Ending::graceful,
       is_violated_ ? HttpError::malformed_response : HttpError::response_truncated);
}

// Calls no user code.
void ClientHttp2::send_frames() {
  const bool was_in_session = std::exchange(is_in_session_, true);
  frames_.send_all(*session_, stream_);
  is_in_session_ = was_in_session;
}

void ClientHttp2::report_closed_streams() {
  while (origin_ != nullptr && std::exchange(has_news_, false)) {
    const auto has_news = [](const Ref<Http2Call>& stream) { return stream->has_news(); };
    auto at = streams_.begin();
    while (origin_ != nullptr &&
           (at = std::ranges::find_if(streams_, has_news)) != streams_.end()) {
      const Ref<Http2Call> stream(at->get());
      stream->tell();
    }
  }
}

// ---- Http2Events

// A header section begins with :status.
bool ClientHttp2::on_field(Http2Stream& stream, std::string_view name, std::string_view value) {
  Http2Call& call = call_of(stream);
  if (call.has_head()) {
    call.take_trailer(name, value);
  } else if (!take_field(name, value)) {
    is_too_long_ = true;
  }
  return origin_ != nullptr;
}

bool ClientHttp2::take_field(std::string_view name, std::string_view value) {
  if (name == ":status") {
    text_.clear();
    is_too_long_ = false;
    head_.status = status_of(value);
    return true;
  }
  if (!text_.has_room(name.size() + value.size(), limits_)) return false;
  return text_.add(name, value, limits_, head_.entries) ||
         (head_.entries.grow(limits_.most_fields()) &&
          text_.add(name, value, limits_, head_.entries));
}

bool ClientHttp2::on_head(Http2Stream& stream, Http2End end) {
  Http2Call& call = call_of(stream);
  if (call.has_head()) {
    call.take_end();
  } else {
    take_head(call, end);
  }
  return origin_ != nullptr;
}

void ClientHttp2::take_head(Http2Call& call, Http2End end) {
  const bool is_tunnel = call.asks_upgrade() && is_success(head_.status);
  if (is_too_long_ || !has_class(head_.status)) return call.refuse();
  if (is_tunnel && (!lets_bytes_through(head_.status) || !show_upgrade(call.upgrade())))
    return call.refuse();
  head_.fields = text_.fields(head_.entries);
  head_.repeated = text_.repeated();
  is_tunnel ? call.take_upgrade(head_, end) : call.take_head(head_, end);
}

// Presents the response to an upgrade as HTTP/1's 101, so that callers need no code for HTTP/2.
bool ClientHttp2::show_upgrade(std::string_view protocol) {
  head_.status = Status::switching_protocols;
  return take_field("connection", "upgrade") && take_field("upgrade", protocol);
}

bool ClientHttp2::on_body(Http2Stream& stream, Bytes bytes) {
  call_of(stream).take_body(bytes);
  return origin_ != nullptr;
}

bool ClientHttp2::on_body_end(Http2Stream& stream) {
  call_of(stream).take_end();
  return origin_ != nullptr;
}

bool ClientHttp2::on_frame(Http2Frame kind) {
  if (origin_ == nullptr) return false;
  return patience_.bears(kind, origin_->core().loop().now());
}

void ClientHttp2::on_violation(Broken broken) {
  if (broken == Broken::connection) is_violated_ = true;
  if (origin_ == nullptr || broken == Broken::connection) return;
  if (!patience_.bears_violation(origin_->core().loop().now())) is_flooded_ = true;
}

void ClientHttp2::on_stream_closed(Http2Stream& stream, Http2Code code) {
  call_of(stream).on_stream_closed(code, is_receiving_ ? Http2Call::By::server : Http2Call::By::us);
  has_news_ = true;
}

Http2Piece ClientHttp2::next_piece(Http2Stream& stream, std::size_t most) {
  return call_of(stream).next_piece(most);
}

Http2Sent ClientHttp2::send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) {
  patience_.on_sent(size);
  return frames_.send_piece(frame_head, size, call_of(stream), stream_);
}

void ClientHttp2::on_end_sent(Http2Stream& stream) { call_of(stream).on_end_sent(); }

}  // namespace spate::http
