#include "http/client/client_http1.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "http/client/client_core.h"
#include "http/client/origin.h"
#include "http/codec/syntax.h"
#include "http/codec/system_error.h"
#include "spate/http/error.h"
#include "spate/loop.h"
#include "spate/net/stream_use.h"

namespace spate::http {

namespace {

constexpr Nanos kOneSecond{1'000'000'000};

// Parses "timeout=5, max=100": how long the server keeps an idle connection.
std::optional<std::uint64_t> seconds_kept(const FieldsView& fields) {
  for (std::string_view member : fields.list(FieldId::keep_alive)) {
    constexpr std::string_view kTimeout = "timeout=";
    if (member.size() < kTimeout.size() ||
        !equal_ignoring_case(member.substr(0, kTimeout.size()), kTimeout))
      continue;
    return parse_number(member.substr(kTimeout.size()), Overflow::saturates);
  }
  return {};
}

}  // namespace

bool ClientHttp1::start() {
  stream_.start(*this);
  return true;
}

// ---- between calls

bool ClientHttp1::carry(CallState& call) {
  // Input before the request belongs to no call, and a server that has closed would lose the
  // request.
  if (!stream_.is_writable() || (has_carried_ && !stream_.is_quiet())) return false;
  const std::string head = call.begin();
  if (!stream_.write(head)) return false;
  is_reused_ = std::exchange(has_carried_, true) || is_idle();
  wake();
  has_received_ = is_in_body_ = false;
  looked_at_ = 0;
  origin_->core().count_request(is_reused_);
  call_ = Ref<CallState>(&call);
  call.attach(*this);
  call.is_paused() ? stream_.pause() : stream_.resume();
  return true;
}

void ClientHttp1::leave(Ending ending) {
  wake();
  origin_ = nullptr;
  ending == Ending::graceful ? stream_.close() : stream_.abort();
}

// ---- for its call

void ClientHttp1::send_body() { call_->send_body(stream_); }

void ClientHttp1::show_more() {
  const Ref<ClientHttp1> self(this);
  CallState& call = *call_;
  if (call.has_more()) call.show_more();
  if (!carries(call)) return;
  if (call.failure()) return fail(call, call.failure());
  if (is_at_end(call)) finish(call, behind());
}

void ClientHttp1::abandon() {
  const Ref<ClientHttp1> self(this);
  const bool is_kept = is_as_good_as_ever();
  const Ref<CallState> call = std::move(call_);
  call->detach();
  is_kept ? origin_->release(*this) : drop(Ending::reset);
}

// False while bytes are received: some may follow the response.
bool ClientHttp1::is_as_good_as_ever() const {
  if (is_receiving_ || origin_ == nullptr || origin_->core().is_closed()) return false;
  return stream_.is_open() && is_at_end(*call_) && may_be_kept(*call_, behind());
}

// ---- receiving

std::size_t ClientHttp1::on_data(Bytes bytes) {
  const Ref<ClientHttp1> self(this);
  if (!call_) {  // Input without a call.
    drop(Ending::reset);
    return bytes.size();
  }
  const Ref<CallState> call(call_.get());
  has_received_ = is_receiving_ = true;
  std::size_t used = 0;
  while (used < bytes.size()) {
    const std::size_t count = take(*call, bytes.subspan(used));
    used += count;
    if (count == 0 || !carries(*call)) break;
  }
  is_receiving_ = false;
  const bool is_done = !carries(*call) && !is_handed_over_;
  return is_done ? bytes.size() : used;
}

std::size_t ClientHttp1::take(CallState& call, Bytes bytes) {
  call.report_upload();
  if (!carries(call) || call.is_paused()) return 0;
  return is_in_body_ ? take_body(call, bytes) : take_head(call, bytes);
}

std::size_t ClientHttp1::take_head(CallState& call, Bytes bytes) {
  ResponseHead head;
  const Parsed parsed = parse_response(bytes, looked_at_, origin_->core().head_limits(), head);
  looked_at_ = parsed.looked_at;
  if (parsed.state == Parsed::State::unfinished) return 0;
  Framing framing;
  if (parsed.state == Parsed::State::broken || frame_response(head, call.method(), framing)) {
    fail(call, HttpError::malformed_response);
    return bytes.size();
  }
  if (!is_informational(head.status)) {
    take_response(call, head, framing, bytes.subspan(head.size));
  } else if (head.status == Status::switching_protocols && call.accepts_upgrade(head.fields)) {
    take_upgrade(call, head, framing);
  } else if (!call.take_informational(head)) {
    fail(call, HttpError::malformed_response);
  }
  return head.size;
}

void ClientHttp1::take_upgrade(CallState& call, const ResponseView& head, const Framing& framing) {
  ClientCore& core = origin_->core();
  call.take_head(head, framing);
  if (call.failure()) return fail(call, call.failure());
  core.upgrade(call, hand_over());
}

// Undoes the settings of HTTP before the Stream is handed over. An empty Stream stays here.
Stream ClientHttp1::hand_over() {
  is_handed_over_ = true;
  Stream stream = std::move(stream_);
  set_use(stream, StreamUse::general);
  stream.stop();
  stream.resume();
  abandon();
  return stream;
}

void ClientHttp1::take_response(CallState& call, const ResponseView& head, const Framing& framing,
                                Bytes behind) {
  is_in_body_ = true;
  note_keep_alive(head);
  call.take_head(head, framing);
  if (!carries(call)) return;
  if (call.failure()) return fail(call, call.failure());
  if (is_at_end(call)) return finish(call, behind.empty() ? Behind::nothing : Behind::something);
  if (call.is_too_long_to_discard()) finish(call, Behind::something);
}

void ClientHttp1::note_keep_alive(const ResponseView& head) {
  kept_for_ = kForever;
  const auto seconds = seconds_kept(head.fields);
  if (!seconds) return;
  const auto most = std::min<std::uint64_t>(*seconds, 1'000'000);
  kept_for_ = kOneSecond * static_cast<std::int64_t>(most) - kOneSecond;
}

std::size_t ClientHttp1::take_body(CallState& call, Bytes bytes) {
  std::size_t used = 0;
  if (call.framing.body == BodyKind::chunked) {
    used = take_chunked(call, bytes);
  } else {
    const bool is_sized = call.framing.body == BodyKind::sized;
    const std::uint64_t most = is_sized ? call.body_left : bytes.size();
    used = call.show(bytes.first(std::min<std::uint64_t>(bytes.size(), most)));
    if (is_sized) call.body_left -= used;
  }
  if (!carries(call)) return used;
  if (call.failure()) {
    fail(call, call.failure());
  } else if (is_at_end(call)) {
    finish(call, used == bytes.size() ? Behind::nothing : Behind::something);
  } else if (call.is_too_long_to_discard()) {
    finish(call, Behind::something);
  }
  return used;
}

std::size_t ClientHttp1::take_chunked(CallState& call, Bytes bytes) {
  const auto step = call.chunks.next(bytes, call.trailers);
  switch (step.state) {
    case ChunkedDecoder::State::data: {
      const std::size_t shown = call.show(step.data);
      call.chunks.take(shown);
      return step.used + shown;
    }
    case ChunkedDecoder::State::end:
      call.framing.body = BodyKind::none;
      break;
    case ChunkedDecoder::State::broken:
      fail(call, HttpError::malformed_response);
      break;
    case ChunkedDecoder::State::unfinished:
      break;
  }
  return step.used;
}

// True if the whole response was received and passed on.
bool ClientHttp1::is_at_end(const CallState& call) const {
  if (call.has_more() || !is_in_body_) return false;
  return call.framing.body == BodyKind::none ||
         (call.framing.body == BodyKind::sized && call.body_left == 0);
}

// ---- the end of a call

bool ClientHttp1::may_be_kept(const CallState& call, Behind behind) const {
  return call.framing.keeps_alive && call.is_sent() && behind == Behind::nothing;
}

// Releases the connection before the callback, so that the user's next call can use it. While
// paused, the end is not reported.
void ClientHttp1::finish(CallState& call, Behind behind) {
  if (call.is_paused()) return;
  if (!call.check_end()) return fail(call, call.failure());
  const Ref<CallState> keep = std::move(call_);
  const bool is_kept = may_be_kept(call, behind);
  ClientCore& core = origin_->core();
  call.detach();
  if (is_kept) {
    origin_->release(*this);
  } else {
    drop(Ending::graceful);
  }
  core.complete(call);
}

void ClientHttp1::fail(CallState& call, std::error_code error) {
  call.core()->fail(call, error);  // This calls abandon().
}

void ClientHttp1::on_end() {
  const Ref<ClientHttp1> self(this);
  if (!call_) return drop(Ending::graceful);
  if (is_in_body_ && call_->framing.body == BodyKind::until_end && !call_->has_more())
    return finish(*call_, Behind::something);
  lose(HttpError::response_truncated);
}

void ClientHttp1::on_closed(std::error_code error) {
  const Ref<ClientHttp1> self(this);
  forget_stream();
  if (!call_) return drop(Ending::reset);
  if (is_at_end(*call_)) return;  // The call is paused, and ends when it is resumed.
  lose(error ? error : std::error_code(HttpError::response_truncated));
}

void ClientHttp1::lose(std::error_code error) {
  const Ref<CallState> call(call_.get());
  ClientCore& core = origin_->core();
  if (is_reused_ && !has_received_ && call->may_repeat())
    return core.repeat(*call, CallState::Repeat::on_fresh);
  const bool is_silent = !has_received_ && error == HttpError::response_truncated;
  core.fail(*call, is_silent ? system_error(ECONNRESET) : error);
}

void ClientHttp1::on_drained() {
  if (!call_) return;
  const Ref<ClientHttp1> self(this);
  const Ref<CallState> call(call_.get());
  send_body();
  call->on_room();
}

}  // namespace spate::http
