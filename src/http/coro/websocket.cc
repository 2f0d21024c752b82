// WebSocket for coroutines: the pieces of its ConnectionAdapter are messages.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/assert.h"
#include "spate/http/client.h"
#include "spate/http/coro_websocket.h"

namespace spate::coro {

using http::system_error;

namespace {

// Bits of the kinds of pieces.
constexpr std::uint8_t kBinary = 1;
constexpr std::uint8_t kUnfinished = 2;

std::uint8_t piece_of(http::MessageKind kind, bool is_last) {
  const std::uint8_t binary = kind == http::MessageKind::binary ? kBinary : 0;
  return is_last ? binary : binary | kUnfinished;
}

}  // namespace

// ---- beginning

std::error_code WebSocket::start(Result<http::WebSocket> made) {
  if (made) {
    socket_ = *std::move(made);
    return {};
  }
  ConnectionAdapter::close(made.error());  // No coroutine waits yet.
  return made.error();
}

std::error_code WebSocket::accept(http::Exchange exchange, const http::WebSocketOptions& options) {
  SPATE_ASSERT(!is_begun() && !is_over() && !socket_.is_open(), "accept() or connect(), and once");
  const std::error_code error = start(http::WebSocket::accept(std::move(exchange), *this, options));
  if (error) return error;
  socket_.pause();
  open();
  return {};
}

WebSocket::Connect WebSocket::connect(http::Client& client, std::string_view url) {
  return connect(client, url, http::WebSocketOptions());
}

WebSocket::Connect WebSocket::connect(http::Client& client, std::string_view url,
                                      const http::WebSocketOptions& options) {
  return connect(client, url, options, http::CallOptions());
}

WebSocket::Connect WebSocket::connect(http::Client& client, std::string_view url,
                                      const http::WebSocketOptions& options,
                                      http::CallOptions&& call) {
  SPATE_ASSERT(!is_begun() && !is_over() && !socket_.is_open(), "accept() or connect(), and once");
  return {*this, start(http::WebSocket::connect(client, url, *this, options, std::move(call)))};
}

void WebSocket::Connect::cancel() {
  if (is_waiting()) socket_.socket_ = http::WebSocket();
  Wait::cancel();
}

void WebSocket::on_open() {
  socket_.pause();
  open();
}

// ---- messages

void WebSocket::on_message(http::MessageKind kind, Bytes bytes) {
  deliver(bytes, piece_of(kind, true));
}
void WebSocket::on_part(http::MessageKind kind, Bytes bytes, bool is_last) {
  deliver(bytes, piece_of(kind, is_last));
}
void WebSocket::on_drained() { drain(); }

// After our close frame it stays resumed, to receive the peer's.
void WebSocket::pause() {
  if (socket_.is_writable()) socket_.pause();
}
void WebSocket::resume() { socket_.resume(); }
void WebSocket::abort_connection() { socket_.abort(); }
bool WebSocket::is_full() const { return socket_.is_full(); }
std::error_code WebSocket::end_of_input() const { return Error::ended; }

WebSocket::Receive WebSocket::receive() {
  SPATE_ASSERT(is_over() || socket_.is_open(), "accept() or connect() first");
  return Receive(*this);
}

Result<Message> WebSocket::Receive::await_resume() {
  const Result<Piece> piece = take();
  if (!piece) return std::unexpected(piece.error());
  const bool is_binary = (piece->kind & kBinary) != 0;
  return Message{.kind = is_binary ? http::MessageKind::binary : http::MessageKind::text,
                 .bytes = piece->bytes,
                 .is_last = (piece->kind & kUnfinished) == 0};
}

WebSocket::Wait WebSocket::wait_for_room(bool was_sent) {
  std::error_code error;
  if (!was_sent) error = socket_.is_writable() ? system_error(ENOBUFS) : write_error();
  return {*this, Wait::For::room, error};
}

WebSocket::Wait WebSocket::send(http::MessageKind kind, Bytes bytes) {
  return wait_for_room(socket_.send(kind, bytes));
}

WebSocket::Wait WebSocket::send_part(http::MessageKind kind, Bytes bytes, bool is_last) {
  return wait_for_room(socket_.send_part(kind, bytes, is_last));
}

// ---- end

WebSocket::Close WebSocket::close(http::CloseCode code, std::string_view reason) {
  if (!is_begun()) return {*this, write_error()};
  socket_.close(code, reason);
  return {*this, {}};
}

Result<http::CloseCode> WebSocket::Close::await_resume() {
  const Result<void> ended = Wait::await_resume();
  if (!ended) return std::unexpected(ended.error());
  return socket_.code_;
}

void WebSocket::on_closed(http::CloseCode code, std::string_view reason, std::error_code error) {
  code_ = code;
  reason_size_ = static_cast<std::uint8_t>(std::min(reason.size(), reason_.size()));
  std::copy_n(reason.data(), reason_size_, reason_.data());
  ConnectionAdapter::close(error);
}

}  // namespace spate::coro
