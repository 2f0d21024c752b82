// Http2Wire's way out: the heads of answers, and their bodies.
#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/outgoing.h"
#include "http/codec/system_error.h"
#include "http/server/exchange_state.h"
#include "http/server/http2_connection.h"
#include "http/server/http2_wire.h"
#include "http/server/server_core.h"
#include "spate/error.h"

namespace spate::http {

namespace {

// As those of a Stream.
constexpr QueueLimits kLimits;

}  // namespace

// To who asks for an upgrade, 2xx would say that there is one.
Status Http2Wire::status_of(const ExchangeState& state, const AnswerHead& answer) {
  const bool is_misleading = state.framing.asks_upgrade && is_success(answer.status);
  return is_misleading ? Status::not_implemented : answer.status;
}

bool Http2Wire::send_head(ExchangeState& state, const AnswerHead& answer, Bytes body) {
  Http2Fields head;
  const std::size_t count = answer.fields == nullptr ? 0 : answer.fields->size();
  if (!is_writable() || !head.reserve(count)) return false;
  const Status status = status_of(state, answer);
  state.outgoing = frame_answer({state.view().method, Version::http_2, true}, status, answer.size);
  head.add_status(status);
  head.add("date", server().date());
  if (!server().name().empty()) head.add("server", server().name());
  if (state.outgoing.announced == Announced::length) head.add_length(state.outgoing.length);
  if (!answer.content_type.empty()) head.add("content-type", answer.content_type);
  if (answer.fields != nullptr) head.add_all(*answer.fields);
  const bool has_body = state.outgoing.body != BodyKind::none;
  if (has_body && !out_.append(body)) return false;
  if (!session().answer(id_, head.view(), has_body ? Http2End::no : Http2End::yes)) {
    out_.clear();
    return false;
  }
  if (!has_body || (!body.empty() && body.size() == state.outgoing.length)) set(kOutEnded);
  on_queued();
  return true;
}

bool Http2Wire::inform(ExchangeState&, const AnswerHead& answer) {
  Http2Fields head;
  const FieldsView fields = answer.fields == nullptr ? FieldsView() : answer.fields->view();
  const bool is_good = answer.status != Status::switching_protocols &&
                       !fields.contains_any(kFramingFields) && head.reserve(fields.size());
  if (!is_writable() || !is_good) return false;
  head.add_status(answer.status);
  head.add_all(fields);
  connection_.flush_later();
  return session().inform(id_, head.view());
}

// More than a Stream would take ends as with a Stream.
bool Http2Wire::has_room(std::uint64_t size) {
  if (!is_writable()) return false;
  if (out_.size() <= kLimits.max && size <= kLimits.max - out_.size()) return true;
  reset(Http2Code::internal_error, Error::queue_full);
  return false;
}

void Http2Wire::on_queued() {
  if (out_.size() > kLimits.high) set(kIsFull);
  last_progress_ = server().loop().now();
  wake();
}

void Http2Wire::wake() {
  if (has(kIsAwaited)) session().wake(id_);
  clear(kIsAwaited);
  connection_.flush_later();
}

bool Http2Wire::send(ExchangeState&, Bytes body) {
  if (!has_room(body.size()) || !out_.append(body)) return false;
  on_queued();
  return true;
}

bool Http2Wire::send(ExchangeState&, Buffer&& body) {
  if (!has_room(body.size())) return false;
  out_.append(std::move(body));
  on_queued();
  return true;
}

std::error_code Http2Wire::send_file(ExchangeState&, int file, std::uint64_t offset,
                                     std::uint64_t size) {
  if (!is_writable()) return system_error(EPIPE);
  if (file < 0) return system_error(EBADF);
  if (offset > INT64_MAX || size > INT64_MAX - offset) return system_error(EINVAL);
  if (!out_.append_file(file, offset, size)) return system_error(ENOMEM);
  on_queued();
  return {};
}

bool Http2Wire::send_end(ExchangeState& state, const Fields& trailers) {
  if (!is_writable()) return false;
  if (!trailers.empty() && state.outgoing.body == BodyKind::chunked) {
    std::unique_ptr<Http2Trailers> copy(new (std::nothrow) Http2Trailers);
    if (copy == nullptr || !copy->fields.add_all(trailers) || !copy->list.reserve(trailers.size()))
      return false;
    copy->list.add_all(copy->fields);
    trailers_ = std::move(copy);
  }
  set(kOutEnded);
  on_queued();
  return true;
}

// 200, as 101 is HTTP/1's.
Result<Stream> Http2Wire::upgrade(ExchangeState& state, std::string_view, const Fields& fields) {
  Http2Fields head;
  if (!is_writable()) return std::unexpected(system_error(EPIPE));
  if (fields.view().contains_any(kFramingFields)) return std::unexpected(system_error(EINVAL));
  auto ends = Stream::memory_pair(server().loop());
  if (!ends) return std::unexpected(ends.error());
  std::unique_ptr<Http2Tunnel> tunnel(new (std::nothrow) Http2Tunnel(
      *this, std::move(ends->first), server().options().idle_timeout));
  if (tunnel == nullptr || !head.reserve(fields.size()))
    return std::unexpected(system_error(ENOMEM));
  head.add_status(Status::ok);
  head.add("date", server().date());
  if (!server().name().empty()) head.add("server", server().name());
  head.add_all(fields);
  if (!session().answer(id_, head.view(), Http2End::no))
    return std::unexpected(system_error(ENOMEM));
  tunnel_ = std::move(tunnel);
  note_end(state, {});
  state.detach_unheard();
  // What has come meanwhile.
  if (!tunnel_->take(std::move(in_))) cut_tunnel();
  if (has(kClientEnded)) tunnel_->take_end();
  return std::move(ends->second);
}

void Http2Wire::send_tunneled() {
  if (is_writable()) wake();
}

void Http2Wire::credit(std::size_t size) {
  if (size == 0 || has(kIsClosed)) return;
  session().credit(id_, size);
  connection_.flush_later();
}

// ---- in the session

Http2Piece Http2Wire::next_piece(std::size_t most) {
  if (tunnel_ != nullptr) {
    const Http2Piece piece = is_writable() ? tunnel_->next_piece(most) : Http2Piece();
    if (piece.size == 0 && !piece.is_last) set(kIsAwaited);
    return piece;
  }
  const long prepared = is_writable() ? out_.prepare(most) : 0;
  if (prepared < 0) {
    reset(Http2Code::internal_error, system_error(static_cast<int>(-prepared)));
    return {};
  }
  const auto size = static_cast<std::size_t>(prepared);
  Http2Piece piece = {.size = size, .is_last = has(kOutEnded) && size == out_.size()};
  if (piece.is_last && trailers_ != nullptr) piece.trailers = trailers_->list.view();
  if (size == 0 && !piece.is_last) set(kIsAwaited);
  return piece;
}

void Http2Wire::take(std::span<std::byte> target) {
  if (tunnel_ != nullptr) return tunnel_->take(target);
  out_.take(target);
  on_piece_sent();
}

bool Http2Wire::take(std::size_t size, Buffer& target) {
  if (tunnel_ != nullptr) return tunnel_->take(size, target);
  const bool is_taken = out_.take(size, target);
  on_piece_sent();
  return is_taken;
}

void Http2Wire::on_piece_sent() {
  last_progress_ = server().loop().now();
  if (!has(kIsFull) || out_.size() > kLimits.low) return;
  clear(kIsFull);
  set(kIsDrained);
  connection_.note_news();
}

void Http2Wire::on_end_sent() {
  set(kEndSent);
  if (tunnel_ != nullptr) tunnel_->on_end_sent();
  if (state_ == nullptr && tunnel_ == nullptr && !has(kClientEnded)) reset(Http2Code::no_error, {});
}

void Http2Wire::on_stream_closed(Http2Code code) {
  set(kIsClosed);
  if (tunnel_ != nullptr) tunnel_->on_stream_closed(code);
  connection_.note_news();
}

}  // namespace spate::http
