// WebSocket: a WebSocket, of a server or a client, whose messages coroutines receive and send.
// Needs spate::http. The namespace is that of the other awaitables (coro/).
//
//   coro::Task<void> echo(http::Exchange exchange) {
//     coro::WebSocket socket;
//     if (socket.accept(std::move(exchange))) co_return;  // The client received an error response.
//     for (;;) {
//       const Result<coro::Message> message = co_await socket.receive();
//       if (!message) co_return;
//       const Result<void> sent = co_await socket.send(message->kind, message->bytes);
//       if (!sent) co_return;
//     }
//   }
//   ...
//   router.get("/echo", [&](http::Exchange exchange) { scope.spawn(echo(std::move(exchange))); });
//
// Ownership: it owns the http::WebSocket and is its handler; it does not move. Destroying it sends
// the queue and a close frame with going_away, and closes. No coroutine may be waiting on it then.
// Cancelling a task cancels any wait of it.
// Threads: the loop's thread only.
// At most one coroutine receives, one waits to send, and one closes, at a time. A received message
// is valid until the coroutine next waits: copy it to keep it. A cancelled receive consumes
// nothing; messages that were sent stay queued.
// Back-pressure: send() waits while the queue is full. While no coroutine receives, nothing is
// read: no message, no pong, no close frame. If a task only sends, run another one that receives.
// Pings, deadlines and limits are those of WebSocketOptions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "spate/coro/extend/connection_adapter.h"
#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/call.h"
#include "spate/http/exchange.h"
#include "spate/http/websocket.h"
#include "spate/http/websocket_code.h"
#include "spate/net/bytes.h"

namespace spate::http {
class Client;
}

namespace spate::coro {

// A message, or with MessageView::parts a part of one, as in WebSocketHandler::on_part().
struct Message {
  http::MessageKind kind = http::MessageKind::text;
  Bytes bytes;
  bool is_last = true;
};

class SPATE_EXPORT WebSocket final : http::WebSocketHandler, ConnectionAdapter {
 public:
  using ConnectionAdapter::Wait;
  class Connect;
  class Receive;
  class Close;

  // Makes an unconnected WebSocket: call accept() or connect() once.
  WebSocket() = default;
  ~WebSocket() = default;

  // Accepts a request, as http::WebSocket::accept(). On an error the client received an error
  // response, and the other functions return the same error. Errors: as there.
  std::error_code accept(http::Exchange exchange, const http::WebSocketOptions& options = {});

  // co_await: connects to a server, and waits until it has accepted. `client` must belong to the
  // task's loop and must outlive the wait. Cancelling the wait cancels the connect.
  // CallOptions::deadline covers the whole. Errors: those of http::WebSocket::connect() and of
  // WebSocketHandler::on_closed().
  Connect connect(http::Client& client, std::string_view url);
  Connect connect(http::Client& client, std::string_view url,
                  const http::WebSocketOptions& options);
  // As above with options of the call, which are moved: std::move() named ones
  // (coroutine-compilers.md).
  Connect connect(http::Client& client, std::string_view url, const http::WebSocketOptions& options,
                  http::CallOptions&& call);

  // co_await: returns the next message. Errors: Error::ended when both sides have sent a close
  // frame (close_code()); otherwise those of WebSocketHandler::on_closed(); ENOMEM.
  Receive receive();

  // co_await: sends a message, and waits for the queue to drain if it is then full. A text must be
  // UTF-8. Errors: EPIPE if it was not sent because one side has begun to close; ENOBUFS if
  // http::WebSocket::send() failed for another reason; the error that closed the connection.
  Wait send(http::MessageKind kind, Bytes bytes);
  Wait send(std::string_view text) { return send(http::MessageKind::text, bytes_of(text)); }
  // As send(), for a message in parts; send nothing else before its last part.
  Wait send_part(http::MessageKind kind, Bytes bytes, bool is_last);
  // co_await: waits until the queue has drained, if it is full.
  Wait drained() { return {*this, Wait::For::room}; }

  // co_await: sends a close frame, waits for the peer's for at most
  // WebSocketOptions::close_timeout, and returns its code. `code` and `reason` are those of
  // http::WebSocket::close(). Messages that arrive meanwhile are discarded. After a cancelled wait
  // the close continues while the WebSocket exists. Errors: Error::deadline, and other errors of
  // on_closed(); EPIPE if it never was open.
  Close close(http::CloseCode code = http::CloseCode::normal, std::string_view reason = {});

  // Return the contents of the peer's close frame. The code is abnormal if none was received.
  http::CloseCode close_code() const { return code_; }
  std::string_view close_reason() const { return {reason_.data(), reason_size_}; }

  // Returns the http::WebSocket, for the protocol, topics, pings, addresses, and sending without
  // waiting. Do not call its pause() and resume(), which are used internally. After its abort()
  // waiting coroutines are not resumed.
  http::WebSocket& socket() { return socket_; }

 private:
  void on_open() override;
  void on_message(http::MessageKind kind, Bytes bytes) override;
  void on_part(http::MessageKind kind, Bytes bytes, bool is_last) override;
  void on_drained() override;
  void on_closed(http::CloseCode code, std::string_view reason, std::error_code error) override;

  void pause() override;
  void resume() override;
  void abort_connection() override;
  bool is_full() const override;
  std::error_code end_of_input() const override;

  std::error_code start(Result<http::WebSocket> made);
  Wait wait_for_room(bool was_sent);

  http::WebSocket socket_;
  http::CloseCode code_ = http::CloseCode::abnormal;
  std::uint8_t reason_size_ = 0;
  std::array<char, 123> reason_{};
};

// The awaitable of connect().
class SPATE_EXPORT WebSocket::Connect : public Wait {
 public:
  Connect(WebSocket& socket, std::error_code error)
      : Wait(socket, For::beginning, error), socket_(socket) {}
  ~Connect() { cancel(); }

  void cancel();

 private:
  WebSocket& socket_;
};

// The awaitable of receive().
class SPATE_EXPORT WebSocket::Receive : public Read {
 public:
  using Read::Read;

  Result<Message> await_resume();
};

// The awaitable of close().
class SPATE_EXPORT WebSocket::Close : public Wait {
 public:
  Close(WebSocket& socket, std::error_code error)
      : Wait(socket, For::end, error), socket_(socket) {}

  Result<http::CloseCode> await_resume();

 private:
  WebSocket& socket_;
};

}  // namespace spate::coro
