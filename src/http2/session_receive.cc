// Session: the input.
#include <algorithm>
#include <utility>

#include "http2/session.h"

namespace spate::http {

namespace {

// Frames queued for a peer that does not read: far more than any well-behaved peer causes.
constexpr std::size_t kMostWaiting = 10'000;
// Frames after HEADERS for one section: an endless one costs the sender little (CVE-2024-27316).
constexpr int kMostContinuations = 8;
constexpr std::size_t kSetting = 6;
constexpr std::size_t kMostSettings = 32;  // In one frame.
constexpr std::size_t kPriorityField = 5;  // RFC 7540's, which is ignored.

// Returns how much of a payload is needed to begin a frame.
std::size_t prelude_of(const FrameHead& head) {
  if (head.type != FrameType::headers && head.type != FrameType::data) return 0;
  const std::size_t priority =
      head.type == FrameType::headers && head.has(kHasPriority) ? kPriorityField : 0;
  return (head.has(kPadded) ? 1 : 0) + priority;
}

}  // namespace

bool Session::receive(Bytes bytes) {
  std::string_view input = text_of(bytes);
  while (step(input)) continue;
  if (reading_ == Reading::nothing) return true;
  return !is_stopped_ && !gather_.has_failed() && !writer_.is_broken() &&
         writer_.count() <= kMostWaiting;
}

bool Session::stop() {
  is_stopped_ = true;
  return false;
}

bool Session::step(std::string_view& input) {
  std::string_view taken;
  switch (reading_) {
    case Reading::preface:
      return take_preface(input);
    case Reading::head:
      if (input.empty() || !gather_.take(input, kFrameHead, taken)) return false;
      frame_ = read_frame_head(taken.data());
      return check_head();
    case Reading::prelude:
      if (!gather_.take(input, prelude_of(frame_), taken)) return false;
      left_ = frame_.size - static_cast<std::uint32_t>(taken.size());
      reading_ = Reading::payload;
      return begin_frame(taken);
    case Reading::payload:
      if (!gather_.take(input, left_, taken)) return false;
      reading_ = Reading::head;
      return end_frame(taken);
    case Reading::body:
      return take_body(input);
    case Reading::padding:
      return take_padding(input);
    case Reading::nothing:
      break;
  }
  return false;
}

bool Session::take_preface(std::string_view& input) {
  const std::string_view wanted = kHttp2Preface.substr(left_);
  const std::size_t size = std::min(wanted.size(), input.size());
  if (!wanted.starts_with(input.substr(0, size))) return stop();
  input.remove_prefix(size);
  left_ += static_cast<std::uint32_t>(size);
  if (left_ == kHttp2Preface.size()) reading_ = Reading::head;
  return reading_ == Reading::head;
}

// The peer's first frame is SETTINGS, and nothing may interrupt a header section.
bool Session::check_head() {
  const bool is_settings = frame_.type == FrameType::settings && !frame_.has(kAck);
  const bool is_more = frame_.type == FrameType::continuation;
  if (!has_settings_ && !is_settings) return fail(Http2Code::protocol_error);
  if (is_more != is_section_open_ || (is_more && frame_.stream != section_.id))
    return fail(Http2Code::protocol_error);
  if (frame_.size > kMostPayload) return fail(Http2Code::frame_size_error);
  if (frame_.size < prelude_of(frame_)) return fail(Http2Code::frame_size_error);
  reading_ = Reading::prelude;
  return true;
}

bool Session::begin_frame(std::string_view prelude) {
  switch (frame_.type) {
    case FrameType::data:
      return begin_data(prelude);
    case FrameType::headers:
      return begin_headers(prelude);
    case FrameType::continuation:
      return ++section_.continuations <= kMostContinuations || stop();
    default:
      return begin_control();
  }
}

bool Session::check_control(std::int32_t stream_wanted, std::uint32_t size_wanted) {
  if (frame_.size != size_wanted) return fail(Http2Code::frame_size_error);
  const bool is_of_connection = frame_.stream == 0;
  return is_of_connection == (stream_wanted == 0) || fail(Http2Code::protocol_error);
}

bool Session::begin_control() {
  constexpr std::int32_t kAny = 1;
  switch (frame_.type) {
    case FrameType::priority:
      return check_control(kAny, 5);
    case FrameType::rst_stream:
      return check_control(kAny, 4);
    case FrameType::ping:
      return check_control(0, 8);
    case FrameType::window_update:
      return frame_.size == 4 || fail(Http2Code::frame_size_error);
    case FrameType::settings:
      if (frame_.size % kSetting != 0 || (frame_.has(kAck) && frame_.size > 0))
        return fail(Http2Code::frame_size_error);
      if (frame_.size / kSetting > kMostSettings) return fail(Http2Code::enhance_your_calm);
      return frame_.stream == 0 || fail(Http2Code::protocol_error);
    case FrameType::goaway:
      if (frame_.size < 8) return fail(Http2Code::frame_size_error);
      return frame_.stream == 0 || fail(Http2Code::protocol_error);
    case FrameType::push_promise:
      return fail(Http2Code::protocol_error);
    case FrameType::priority_update:
      if (!is_server()) return fail(Http2Code::protocol_error);
      if (frame_.size < 4) return fail(Http2Code::frame_size_error);
      return frame_.stream == 0 || fail(Http2Code::protocol_error);
    default:
      return true;
  }
}

bool Session::end_frame(std::string_view payload) {
  switch (frame_.type) {
    case FrameType::headers:
      payload.remove_suffix(padding_);
      return take_block(payload);
    case FrameType::continuation:
      return take_block(payload);
    case FrameType::rst_stream:
      return take_rst_stream(payload);
    case FrameType::settings:
      return take_settings(payload);
    case FrameType::ping:
      return take_ping(payload);
    case FrameType::goaway:
      return take_goaway(payload);
    case FrameType::window_update:
      return take_window_update(payload);
    case FrameType::priority_update:
      return take_priority_update(payload);
    default:
      return count(Http2Frame::idle) || stop();
  }
}

bool Session::is_idle(std::int32_t id) const {
  const bool is_of_client = id % 2 == 1;
  if (!is_of_client) return true;  // There are no pushed streams.
  if (is_server()) return id > last_peer_;
  return next_own_ > 0 && id >= next_own_;
}

// ---- header sections

bool Session::begin_headers(std::string_view prelude) {
  padding_ = frame_.has(kPadded) ? static_cast<unsigned char>(prelude[0]) : 0;
  if (frame_.stream == 0 || padding_ > left_) return fail(Http2Code::protocol_error);
  const bool has_priority = frame_.has(kHasPriority);
  const bool depends_on_itself = has_priority && read_31_bits(prelude.data() + prelude.size() -
                                                              kPriorityField) == frame_.stream;
  section_ = {.id = frame_.stream, .is_last = frame_.has(kEndStream)};
  is_section_open_ = true;
  decoder_.begin_block();
  StreamState* const stream = streams_.find(frame_.stream);
  if (stream == nullptr) return is_server() ? begin_stream(depends_on_itself) : begin_response();
  const bool has_head = stream->has(StreamState::kHasHead);
  return begin_more(*stream, has_head ? SectionKind::trailers : SectionKind::response);
}

bool Session::ignore_section() {
  section_.is_ignored = true;
  return true;
}

// A section of a closed stream is an error, unless this side closed it, which the client may not
// have noticed (RFC 9113 §5.1).
bool Session::begin_stream(bool depends_on_itself) {
  const std::int32_t id = frame_.stream;
  if (id % 2 == 0) return fail(Http2Code::protocol_error);
  if (id <= last_peer_) {
    const bool is_known = id > last_dropped_ && id <= last_accepted_;
    return is_known ? fail(Http2Code::protocol_error) : ignore_section();
  }
  last_peer_ = id;
  const bool is_full = streams_.size() >= options_.max_streams;
  if (is_full && is_acknowledged_) return fail(Http2Code::protocol_error);
  if (is_refusing_) return ignore_section();
  if (depends_on_itself) return fail(Http2Code::protocol_error);
  if (is_full) {
    reset_unknown(id, Http2Code::refused_stream);
    return ignore_section();
  }
  StreamState* const stream = streams_.add(id, nullptr, first_window_);
  if (stream == nullptr) return stop();
  last_accepted_ = id;
  stream->priority = take_early_priority(id);
  stream->user = events_.on_stream(id);
  if (stream->user != nullptr) return true;
  reset_stream(*stream, Http2Code::internal_error);
  return ignore_section();
}

bool Session::begin_response() {
  return is_idle(frame_.stream) ? fail(Http2Code::protocol_error) : ignore_section();
}

bool Session::begin_more(StreamState& stream, SectionKind kind) {
  section_.kind = kind;
  if (stream.has(StreamState::kRemoteEnded)) return fail(Http2Code::stream_closed);
  return !stream.has(StreamState::kReset) || ignore_section();
}

bool Session::take_block(std::string_view fragment) {
  if (!block_.empty()) {
    if (!block_.reserve(block_.size() + fragment.size())) return stop();
    std::ranges::copy(fragment, block_.end());
    block_.grow_reserved(fragment.size());
    fragment = {block_.begin(), block_.size()};
  }
  if (!take_fields(fragment)) return false;
  const bool is_end = frame_.has(kEndHeaders);
  if (is_end && !fragment.empty()) return fail(Http2Code::compression_error);
  Array<char> rest;
  if (!fragment.empty() && !rest.reserve(fragment.size())) return stop();
  std::ranges::copy(fragment, rest.begin());
  rest.grow_reserved(fragment.size());
  block_.swap(rest);
  return !is_end || end_section();
}

// Leaves the part of a field at the end of the fragment.
bool Session::take_fields(std::string_view& block) {
  HpackField field;
  for (;;) {
    switch (decoder_.next(block, field)) {
      case HpackStep::field:
        break;
      case HpackStep::end:
      case HpackStep::incomplete:
        return true;
      case HpackStep::invalid:
        return fail(Http2Code::compression_error);
      case HpackStep::no_memory:
        return stop();
    }
    if (section_.is_ignored) continue;
    // Between the frames of a section the stream may have closed.
    StreamState* const stream = streams_.find(section_.id);
    if (stream == nullptr || stream->has(StreamState::kReset))
      ignore_section();
    else if (!take_field(*stream, field))
      return stop();
  }
}

bool Session::take_field(StreamState& stream, const HpackField& field) {
  const Verdict verdict = stream.rules.take_field(field, section_.kind);
  if (verdict == Verdict::drop) return true;
  if (verdict == Verdict::malformed) {
    reset_stream(stream, Http2Code::protocol_error);
    return ignore_section();
  }
  if (field.trait.kind == FieldKind::priority && section_.kind == SectionKind::request) {
    Http2Priority priority;
    if (parse_priority(field.value, priority)) order_.set_priority(stream, priority);
  }
  return events_.on_field(*stream.user, field.name, field.value);
}

bool Session::end_section() {
  is_section_open_ = false;
  StreamState* const stream = streams_.find(section_.id);
  if (stream == nullptr) return count(Http2Frame::idle) || stop();
  const bool is_ignored = section_.is_ignored || stream->has(StreamState::kReset);
  if (section_.is_last) end_remote(*stream);
  if (is_ignored) return count(Http2Frame::idle) || stop();
  if (!stream->rules.end_section(section_.kind, section_.is_last) ||
      (section_.is_last && !stream->rules.take_end())) {
    reset_stream(*stream, Http2Code::protocol_error);
    return true;
  }
  if (!stream->rules.awaits_final_response()) stream->set(StreamState::kHasHead);
  return report_section(*stream) || stop();
}

bool Session::report_section(StreamState& stream) {
  const bool is_end = is_server() && section_.kind == SectionKind::trailers;
  const bool goes_on =
      is_end ? events_.on_body_end(*stream.user)
             : events_.on_head(*stream.user, section_.is_last ? Http2End::yes : Http2End::no);
  if (!goes_on || !count(Http2Frame::useful)) return false;
  close_if_over(stream);
  return true;
}

// ---- bodies

bool Session::begin_data(std::string_view prelude) {
  padding_ = frame_.has(kPadded) ? static_cast<unsigned char>(prelude[0]) : 0;
  const StreamState* const stream = streams_.find(frame_.stream);
  if (stream == nullptr) {
    if (is_idle(frame_.stream)) return fail(Http2Code::protocol_error);
  } else if (stream->has(StreamState::kRemoteEnded)) {
    return fail(Http2Code::stream_closed);
  } else if (!is_server() && !stream->has(StreamState::kHasHead | StreamState::kReset) &&
             !stream->rules.awaits_final_response()) {
    return fail(Http2Code::protocol_error);
  }
  has_data_ = false;
  is_ignored_ = stream == nullptr || stream->has(StreamState::kReset);
  if (is_ignored_) padding_ = 0;
  if (padding_ > left_) return fail(Http2Code::protocol_error);
  left_ -= padding_;
  reading_ = Reading::body;
  if (!prelude.empty()) count_received(prelude.size());
  return true;
}

// Updates the connection's window at once: a stream that is not read is held up by its own window,
// and must not hold up others.
void Session::count_in_connection(std::size_t size) {
  received_.take(size, kConnectionWindow);
  received_.use(size);
  const std::uint32_t increment = received_.give_back(kConnectionWindow);
  if (increment > 0) writer_.window_update(0, increment);
}

// Counts bytes that are not reported as used.
void Session::count_received(std::size_t size) {
  count_in_connection(size);
  StreamState* const stream = streams_.find(frame_.stream);
  if (is_ignored_ || stream == nullptr || stream->has(StreamState::kReset)) return;
  if (!stream->received.take(size, first_received_window_)) {
    reset_stream(*stream, Http2Code::flow_control_error);
    return;
  }
  credit(frame_.stream, size);
}

bool Session::take_body(std::string_view& input) {
  const std::string_view chunk = input.substr(0, left_);
  input.remove_prefix(chunk.size());
  left_ -= static_cast<std::uint32_t>(chunk.size());
  if (!chunk.empty()) {
    count_in_connection(chunk.size());
    StreamState* const stream = streams_.find(frame_.stream);
    is_ignored_ |= stream == nullptr || stream->has(StreamState::kReset);
    if (!is_ignored_ && !take_chunk(*stream, chunk)) return stop();
  }
  if (left_ > 0) return false;
  left_ = padding_;
  reading_ = Reading::padding;
  return true;
}

bool Session::take_chunk(StreamState& stream, std::string_view chunk) {
  if (!stream.received.take(chunk.size(), first_received_window_)) {
    reset_stream(stream, Http2Code::flow_control_error);
    return true;
  }
  if (!stream.rules.take_body(chunk.size())) {
    reset_stream(stream, Http2Code::protocol_error);
    return true;
  }
  has_data_ = true;
  return events_.on_body(*stream.user, bytes_of(chunk));
}

bool Session::take_padding(std::string_view& input) {
  const std::size_t size = std::min<std::size_t>(left_, input.size());
  input.remove_prefix(size);
  left_ -= static_cast<std::uint32_t>(size);
  if (size > 0) count_received(size);
  if (left_ > 0) return false;
  reading_ = Reading::head;
  return end_data() || stop();
}

bool Session::end_data() {
  StreamState* const stream = streams_.find(frame_.stream);
  if (stream == nullptr || is_ignored_ || stream->has(StreamState::kReset))
    return count(Http2Frame::idle);
  const bool is_last = frame_.has(kEndStream);
  if (is_last) {
    end_remote(*stream);
    if (!stream->rules.take_end()) {
      reset_stream(*stream, Http2Code::protocol_error);
      return true;
    }
    if (!events_.on_body_end(*stream->user)) return false;
  }
  if (!count(has_data_ || is_last ? Http2Frame::useful : Http2Frame::idle)) return false;
  close_if_over(*stream);
  return true;
}

// ---- the other frames

bool Session::take_rst_stream(std::string_view payload) {
  if (is_idle(frame_.stream)) return fail(Http2Code::protocol_error);
  if (!count(Http2Frame::reset)) return stop();
  if (StreamState* const stream = streams_.find(frame_.stream))
    close(*stream, static_cast<Http2Code>(read_number(payload.data(), 4)));
  return true;
}

bool Session::take_settings(std::string_view payload) {
  if (frame_.has(kAck)) {
    if (is_acknowledged_) return fail(Http2Code::protocol_error);
    is_acknowledged_ = true;
    first_received_window_ = static_cast<std::int32_t>(options_.stream_window);
    return count(Http2Frame::idle) || stop();
  }
  if (!has_settings_) peer_max_streams_ = UINT32_MAX;
  for (; !payload.empty(); payload.remove_prefix(kSetting)) {
    const auto setting = static_cast<Setting>(read_number(payload.data(), 2));
    const Http2Code code = apply(setting, read_number(payload.data() + 2, 4));
    if (code != Http2Code::no_error) return fail(code);
  }
  if (!has_settings_ && peer_priorities_ == UINT32_MAX) peer_priorities_ = 0;
  has_settings_ = true;
  writer_.settings_ack();
  events_.on_settings();
  return count(Http2Frame::idle) || stop();
}

Http2Code Session::apply(Setting setting, std::uint32_t value) {
  constexpr std::uint32_t kMostFrame = (1 << 24) - 1;
  const auto allow_if = [](bool is_allowed) {
    return is_allowed ? Http2Code::no_error : Http2Code::protocol_error;
  };
  switch (setting) {
    case Setting::header_table_size:
      writer_.set_table_limit(value);
      break;
    case Setting::enable_push:
      return allow_if(value == 0 || (value == 1 && is_server()));
    case Setting::max_concurrent_streams:
      peer_max_streams_ = value;
      break;
    case Setting::initial_window_size:
      return set_first_window(value);
    case Setting::max_frame_size:
      return allow_if(value >= kMostPayload && value <= kMostFrame);
    case Setting::enable_connect_protocol:
      if (value > 1 || (!is_server() && value < peer_tunnels_)) return Http2Code::protocol_error;
      peer_tunnels_ = value;
      break;
    case Setting::no_rfc7540_priorities:
      if (value > 1 || (peer_priorities_ != UINT32_MAX && peer_priorities_ != value))
        return Http2Code::protocol_error;
      peer_priorities_ = value;
      break;
    default:
      break;
  }
  return Http2Code::no_error;
}

Http2Code Session::set_first_window(std::uint32_t value) {
  if (value > INT32_MAX) return Http2Code::flow_control_error;
  const std::int64_t change = std::int64_t{value} - first_window_;
  first_window_ = static_cast<std::int32_t>(value);
  bool is_valid = true;
  streams_.for_each([&](StreamState& stream) {
    const std::int64_t window = stream.window + change;
    is_valid &= window <= INT32_MAX && window >= INT32_MIN;
    stream.window = static_cast<std::int32_t>(window);
    order_.update(stream);
  });
  return is_valid ? Http2Code::no_error : Http2Code::flow_control_error;
}

bool Session::take_ping(std::string_view payload) {
  if (!frame_.has(kAck)) writer_.ping(payload, kAck);
  return count(Http2Frame::idle) || stop();
}

// A client's number refers to pushed streams, which do not exist. A server's may only fall.
bool Session::take_goaway(std::string_view payload) {
  const std::int32_t last = read_31_bits(payload.data());
  if (!is_server()) {
    if (last > goaway_last_ || (last > 0 && last % 2 == 0)) return fail(Http2Code::protocol_error);
    goaway_last_ = last;
  }
  is_refused_ = true;
  events_.on_last_stream();
  if (!count(Http2Frame::idle)) return stop();
  if (is_server()) return true;
  streams_.for_each([&](StreamState& stream) {
    if (stream.id > last) close(stream, Http2Code::refused_stream);
  });
  return true;
}

bool Session::take_window_update(std::string_view payload) {
  const std::int32_t increment = read_31_bits(payload.data());
  StreamState* const stream = streams_.find(frame_.stream);
  const bool is_of_connection = frame_.stream == 0;
  if (!is_of_connection && is_idle(frame_.stream)) return fail(Http2Code::protocol_error);
  if (increment == 0 && (is_of_connection || stream != nullptr))
    return fail(Http2Code::protocol_error);
  if (is_of_connection) {
    window_ += increment;
    if (window_ > INT32_MAX) return fail(Http2Code::flow_control_error);
  } else if (stream != nullptr) {
    widen(*stream, increment);
  }
  return count(Http2Frame::idle) || stop();
}

void Session::widen(StreamState& stream, std::int32_t increment) {
  if (std::int64_t{stream.window} + increment > INT32_MAX)
    return reset_stream(stream, Http2Code::flow_control_error);
  stream.window += increment;
  order_.update(stream);
}

// A malformed priority is ignored (RFC 9218 §7.1).
bool Session::take_priority_update(std::string_view payload) {
  const std::int32_t id = read_31_bits(payload.data());
  if (id == 0 || id % 2 == 0) return fail(Http2Code::protocol_error);
  Http2Priority priority;
  if (parse_priority(payload.substr(4), priority)) {
    if (StreamState* const stream = streams_.find(id))
      order_.set_priority(*stream, priority);
    else if (is_idle(id))
      early_[next_early_++ % early_.size()] = {id, priority};
  }
  return count(Http2Frame::idle) || stop();
}

Http2Priority Session::take_early_priority(std::int32_t id) {
  Http2Priority priority;
  for (EarlyPriority& each : early_)
    if (each.id == id) priority = std::exchange(each, {}).priority;
  return priority;
}

}  // namespace spate::http
