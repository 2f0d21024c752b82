#include "http2/session.h"

#include <algorithm>
#include <utility>

namespace spate::http {

namespace {

// Codes of errors of the peer. The others are the owner's decision, or its errors.
bool is_violation(std::uint32_t code) {
  const auto known = static_cast<Http2Code>(code);
  return known != Http2Code::no_error && known != Http2Code::internal_error &&
         known != Http2Code::cancel;
}

}  // namespace

bool Session::open(std::size_t max_head) {
  const auto head = static_cast<std::uint32_t>(max_head);
  if (is_server()) {
    writer_.settings({{Setting::max_concurrent_streams, options_.max_streams},
                      {Setting::initial_window_size, options_.stream_window},
                      {Setting::max_header_list_size, head},
                      {Setting::enable_connect_protocol, 1},
                      {Setting::no_rfc7540_priorities, 1}});
  } else {
    reading_ = Reading::head;
    writer_.preface();
    writer_.settings({{Setting::enable_push, 0},
                      {Setting::initial_window_size, options_.stream_window},
                      {Setting::max_header_list_size, head}});
  }
  writer_.window_update(0, kConnectionWindow - kFirstWindow);
  return !writer_.is_broken();
}

bool Session::is_over() const {
  if (is_broken_ || writer_.is_broken()) return true;
  if (!writer_.empty() || has_reports()) return false;
  return reading_ == Reading::nothing || (streams_.size() == 0 && (is_refusing_ || is_refused_));
}

// ---- submitting

StreamState* Session::find_writable(std::int32_t id) {
  StreamState* const stream = streams_.find(id);
  if (stream == nullptr || stream->has(StreamState::kReset | StreamState::kLocalEnded))
    return nullptr;
  return stream;
}

bool Session::inform(std::int32_t id, std::span<const Http2Field> head) {
  if (reading_ == Reading::nothing) return true;
  const StreamState* const stream = find_writable(id);
  if (stream == nullptr || stream->has(StreamState::kHasResponded)) return false;
  writer_.headers(id, head, Http2End::no);
  return !writer_.is_broken();
}

bool Session::respond(std::int32_t id, std::span<const Http2Field> head, Http2End end) {
  if (reading_ == Reading::nothing) return true;  // Nothing is sent after the error.
  StreamState* const stream = find_writable(id);
  if (stream == nullptr || stream->has(StreamState::kHasResponded)) return false;
  stream->set(StreamState::kHasResponded);
  writer_.headers(id, head, end);
  begin_body(*stream, end);
  return !writer_.is_broken();
}

std::int32_t Session::request(Http2Stream& user, std::span<const Http2Field> head, Http2End end) {
  const bool is_closed = is_refused_ || reading_ == Reading::nothing;
  if (is_closed || next_own_ < 0 || active_ >= peer_max_streams_ || writer_.is_broken()) return -1;
  StreamState* const stream = streams_.add(next_own_, &user, first_window_);
  if (stream == nullptr) return -1;
  next_own_ = static_cast<std::int32_t>(static_cast<std::uint32_t>(next_own_) + 2);
  ++active_;
  for (const Http2Field& field : head)
    if (field.name == ":method") stream->rules.note_request(field.value);
  writer_.headers(stream->id, head, end);
  begin_body(*stream, end);
  return stream->id;
}

void Session::wake(std::int32_t id) {
  StreamState* const stream = streams_.find(id);
  if (stream == nullptr) return;
  stream->clear(StreamState::kDeferred);
  order_.update(*stream);
}

bool Session::reset(std::int32_t id, Http2Code code) {
  StreamState* const stream = streams_.find(id);
  if (stream != nullptr) reset_stream(*stream, code);
  return !writer_.is_broken();
}

void Session::credit(std::int32_t id, std::size_t size) {
  StreamState* const stream = streams_.find(id);
  if (stream == nullptr) return;
  stream->received.use(size);
  announce_window(*stream);
}

// Until an update has left, the peer cannot have it, and no other follows.
void Session::announce_window(StreamState& stream) {
  using enum StreamState::Flag;
  if (stream.has(kRemoteEnded | kReset | kUpdateUnreported)) return;
  const std::uint32_t increment = stream.received.give_back(first_received_window_);
  if (increment == 0) return;
  writer_.window_update(stream.id, increment);
  stream.set(kUpdateUnreported);
  add_report(stream);
}

bool Session::ping() {
  writer_.ping(std::string_view("\0\0\0\0\0\0\0\0", 8), 0);
  return !writer_.is_broken();
}

std::uint32_t Session::max_streams() const {
  return std::min(options_.max_streams, peer_max_streams_);
}

Http2Tunnels Session::tunnels() const {
  if (!has_settings_) return Http2Tunnels::unknown;
  return peer_tunnels_ == 1 ? Http2Tunnels::taken : Http2Tunnels::refused;
}

void Session::announce_end() {
  const bool is_known = is_announced_ || is_refusing_ || is_refused_;
  if (is_known || reading_ == Reading::nothing) return;
  is_announced_ = true;
  writer_.goaway(INT32_MAX, 0);
}

void Session::refuse_streams(Http2Code code) {
  if (reading_ == Reading::nothing) return;
  is_refusing_ = true;
  writer_.goaway(last_accepted_, static_cast<std::uint32_t>(code));
  if (code != Http2Code::no_error) ++unreported_goaways_;
}

bool Session::fail(Http2Code code) {
  refuse_streams(code);
  reading_ = Reading::nothing;
  return false;
}

// ---- streams

void Session::end_local(StreamState& stream) {
  stream.set(StreamState::kLocalEnded | StreamState::kEndUnreported);
  order_.update(stream);
  add_report(stream);
}

// After the header section.
void Session::begin_body(StreamState& stream, Http2End end) {
  if (end == Http2End::yes) return end_local(stream);
  stream.set(StreamState::kHasBody);
  order_.update(stream);
}

void Session::reset_stream(StreamState& stream, Http2Code code) {
  if (stream.has(StreamState::kReset) || reading_ == Reading::nothing) return;
  stream.set(StreamState::kReset | StreamState::kResetUnreported);
  stream.code = static_cast<std::uint32_t>(code);
  order_.update(stream);
  writer_.rst_stream(stream.id, stream.code);
  uncount(stream);
  last_dropped_ = std::max(last_dropped_, stream.id);
  add_report(stream);
}

void Session::reset_unknown(std::int32_t id, Http2Code code) {
  writer_.rst_stream(id, static_cast<std::uint32_t>(code));
  last_dropped_ = std::max(last_dropped_, id);
  if (is_violation(static_cast<std::uint32_t>(code))) ++unreported_streams_;
}

// A stream that has ended makes room at once, so that the owner can begin another inside the event.
void Session::end_remote(StreamState& stream) {
  stream.set(StreamState::kRemoteEnded);
  if (stream.is_over()) uncount(stream);
}

void Session::uncount(StreamState& stream) {
  if (is_server() || stream.has(StreamState::kUncounted)) return;
  stream.set(StreamState::kUncounted);
  --active_;
}

void Session::close_if_over(StreamState& stream) {
  if (stream.is_over() && !stream.has(StreamState::kEndUnreported | StreamState::kReset))
    close(stream, Http2Code::no_error);
}

void Session::close(StreamState& stream, Http2Code code) {
  order_.remove(stream);
  if (ReportingStreams::is_linked(stream)) ReportingStreams::remove(stream);
  uncount(stream);
  Http2Stream* const user = stream.user;
  streams_.remove(stream);
  if (user != nullptr) events_.on_stream_closed(*user, code);
}

// ---- reports of frames that have left

void Session::add_report(StreamState& stream) {
  if (!ReportingStreams::is_linked(stream)) reporting_.push_back(stream);
}

// Calls of the owner may submit further frames, which are reported when they leave in turn.
void Session::report_sent() {
  for (; unreported_streams_ > 0; --unreported_streams_)
    events_.on_violation(Http2Events::Broken::stream);
  ReportingStreams sent = std::move(reporting_);
  while (StreamState* const stream = sent.pop_front()) report_sent(*stream);
  for (; unreported_goaways_ > 0; --unreported_goaways_)
    events_.on_violation(Http2Events::Broken::connection);
}

void Session::report_sent(StreamState& stream) {
  const bool is_reset = stream.has(StreamState::kResetUnreported);
  const bool has_ended = stream.has(StreamState::kEndUnreported);
  stream.clear(StreamState::kResetUnreported | StreamState::kEndUnreported |
               StreamState::kUpdateUnreported);
  announce_window(stream);
  if (has_ended && stream.user != nullptr) events_.on_end_sent(*stream.user);
  if (!is_reset) return close_if_over(stream);
  if (is_violation(stream.code)) events_.on_violation(Http2Events::Broken::stream);
  close(stream, static_cast<Http2Code>(stream.code));
}

// ---- sending

Bytes Session::next_frame() {
  if (writer_.empty()) send_bodies();
  if (is_broken_ || writer_.is_broken() || writer_.empty()) return {};
  const std::string_view frames = writer_.take();
  report_sent();
  return bytes_of(frames);
}

// Until a frame other than DATA is due, which must leave first, or the owner wants no more.
void Session::send_bodies() {
  if (reading_ == Reading::nothing) return;
  while (window_ > 0 && writer_.empty() && !is_broken_) {
    StreamState* const stream = order_.first();
    if (stream == nullptr || !send_piece(*stream)) return;
  }
}

bool Session::send_piece(StreamState& stream) {
  const std::int64_t most =
      std::min({window_, std::int64_t{stream.window}, std::int64_t{kMostPayload}});
  const Http2Piece piece = events_.next_piece(*stream.user, static_cast<std::size_t>(most));
  if (stream.has(StreamState::kReset)) return true;
  if (piece.size == 0 && !piece.is_last) {
    stream.set(StreamState::kDeferred);
    order_.update(stream);
    return true;
  }
  return send_data(stream, piece);
}

bool Session::send_data(StreamState& stream, const Http2Piece& piece) {
  const bool has_trailers = !piece.trailers.empty();
  const bool is_end = piece.is_last && !has_trailers;
  char head[kFrameHead];
  write_frame_head(head, {.size = static_cast<std::uint32_t>(piece.size),
                          .type = FrameType::data,
                          .flags = static_cast<std::uint8_t>(is_end ? kEndStream : 0),
                          .stream = stream.id});
  const Http2Sent sent =
      events_.send_piece(*stream.user, bytes_of(std::string_view(head, kFrameHead)), piece.size);
  if (sent == Http2Sent::failed) return is_broken_ = true, false;
  window_ -= static_cast<std::int64_t>(piece.size);
  stream.window -= static_cast<std::int32_t>(piece.size);
  order_.note_sent(stream);
  order_.update(stream);
  if (piece.is_last && has_trailers) {
    writer_.headers(stream.id, piece.trailers, Http2End::yes);
    end_local(stream);
  } else if (is_end) {
    stream.set(StreamState::kLocalEnded);
    order_.update(stream);
    events_.on_end_sent(*stream.user);
    close_if_over(stream);
  }
  return sent == Http2Sent::yes;
}

}  // namespace spate::http
