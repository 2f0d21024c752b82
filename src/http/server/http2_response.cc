// Http2Wire's output: header sections of responses, and their bodies.
#include <cerrno>
#include <new>
#include <utility>

#include "core/result.h"
#include "http/codec/outgoing.h"
#include "http/codec/system_error.h"
#include "http/server/exchange_state.h"
#include "http/server/file_piece.h"
#include "http/server/http2_connection.h"
#include "http/server/http2_wire.h"
#include "http/server/server_core.h"
#include "spate/error.h"

namespace spate::http {

namespace {

// The limits of a Stream.
constexpr QueueLimits kLimits;

FieldsView added_fields(const ExchangeState& state) {
  const Fields* added = state.added_fields();
  return added == nullptr ? FieldsView() : added->view();
}

}  // namespace

// Returns false while the client still sends its body: with a Content-Length, curl 7.88 reads
// nothing after the response, and misses the WINDOW_UPDATEs that the rest of the body requires.
bool Http2Wire::announces_length(const ExchangeState& state) const {
  const bool is_early = state.body().exists() && !has(kClientEnded);
  return state.response().framing().announced == Announced::length && !is_early;
}

bool Http2Wire::send_head(ExchangeState& state, const ServerResponseHead& response, Bytes body) {
  Http2Fields head;
  const FieldsView added = added_fields(state);
  const std::size_t count = response.fields == nullptr ? 0 : response.fields->size();
  if (!is_writable()) return false;
  if (!head.reserve(count + added.size())) return state.note_refusal(ENOMEM);
  state.response().frame({state.view().method, Version::http_2, true}, response.status,
                         response.size);
  const Outgoing& framing = state.response().framing();
  head.add_status(response.status);
  head.add("date", server().date());
  if (!server().name().empty()) head.add("server", server().name());
  if (announces_length(state)) head.add_length(framing.length);
  if (!response.content_type.empty()) head.add("content-type", response.content_type);
  if (response.fields != nullptr) head.add_all(*response.fields);
  head.add_all(added);
  if (head.is_refused()) return state.note_refusal(EINVAL);
  const bool has_body = framing.body != BodyKind::none;
  if (has_body && !out_.append(body)) return state.note_refusal(ENOMEM);
  if (!session().respond(id_, head.view(), has_body ? Http2End::no : Http2End::yes)) {
    out_.clear();
    return state.note_refusal(ENOMEM);
  }
  if (!has_body || (!body.empty() && body.size() == framing.length)) set(kOutEnded);
  on_queued();
  return true;
}

bool Http2Wire::inform(ExchangeState&, const ServerResponseHead& response) {
  Http2Fields head;
  const FieldsView fields = response.fields == nullptr ? FieldsView() : response.fields->view();
  if (!is_writable() || !head.reserve(fields.size())) return false;
  head.add_status(response.status);
  head.add_all(fields);
  connection_.flush_later();
  return session().inform(id_, head.view());
}

// A body that exceeds the limits ends the stream, as it ends a Stream.
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
  if (!has_room(body.size())) return false;
  if (!out_.append(body)) return reset(Http2Code::internal_error, system_error(ENOMEM)), false;
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
                                     std::uint64_t size, ThreadPool& pool) {
  if (!is_writable()) return system_error(EPIPE);
  if (const std::error_code unfit = check_piece(file, offset, size)) return unfit;
  if (!out_.append_file(file, offset, size, pool)) return system_error(ENOMEM);
  on_queued();
  return {};
}

bool Http2Wire::send_end(ExchangeState& state, const Fields& trailers) {
  if (!is_writable()) return false;
  if (!trailers.empty() && state.response().framing().body == BodyKind::chunked) {
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

// Sends 200: HTTP/2 has no 101.
Result<Stream> Http2Wire::upgrade(ExchangeState& state, std::string_view, const Fields& fields) {
  Http2Fields head;
  if (!is_writable()) return std::unexpected(system_error(EPIPE));
  auto ends = Stream::memory_pair(server().loop());
  if (!ends) return std::unexpected(ends.error());
  std::unique_ptr<Http2Tunnel> tunnel(new (std::nothrow) Http2Tunnel(
      *this, std::move(ends->first), server().options().idle_timeout));
  const FieldsView added = added_fields(state);
  if (tunnel == nullptr || !head.reserve(fields.size() + added.size()))
    return std::unexpected(system_error(ENOMEM));
  head.add_status(Status::ok);
  head.add("date", server().date());
  if (!server().name().empty()) head.add("server", server().name());
  head.add_all(fields);
  head.add_all(added);
  if (!session().respond(id_, head.view(), Http2End::no))
    return std::unexpected(system_error(ENOMEM));
  tunnel_ = std::move(tunnel);
  state.response().note_upgrade(Status::ok);
  leave_exchange();
  server().conclude_later(state, {});
  // Passes on the input that arrived meanwhile.
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

// ---- called by the session

Http2Piece Http2Wire::next_piece(std::size_t most) {
  if (tunnel_ != nullptr) {
    const Http2Piece piece = is_writable() ? tunnel_->next_piece(most) : Http2Piece();
    if (piece.size == 0 && !piece.is_last) set(kIsAwaited);
    return piece;
  }
  const long prepared =
      is_writable() ? out_.prepare(most, server().loop(), bind<&Http2Wire::wake>(this)) : 0;
  if (prepared == -EAGAIN) return set(kIsAwaited), Http2Piece();
  if (prepared < 0)
    return reset(Http2Code::internal_error, spate::error_of(prepared)), Http2Piece();
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
  last_progress_ = server().loop().now();
  if (tunnel_ != nullptr) tunnel_->on_end_sent();
  if (is_uploading() && connection_.has_client_ended()) reset(Http2Code::no_error, {});
  credit_discarded();
}

void Http2Wire::on_stream_closed(Http2Code code) {
  set(kIsClosed);
  out_.clear();
  if (tunnel_ != nullptr) tunnel_->on_stream_closed(code);
  connection_.note_news();
}

}  // namespace spate::http
