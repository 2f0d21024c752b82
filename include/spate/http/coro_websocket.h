// WebSocket: one whose messages are received and sent by coroutines, a server's or a client's.
// Needs spate::http; the namespace is that of the other awaitables (coro/).
//
//   coro::Task<void> echo(http::Exchange asked) {
//     coro::WebSocket socket;
//     if (socket.accept(std::move(asked))) co_return;  // The client was told why not.
//     for (;;) {
//       const Result<coro::Message> message = co_await socket.receive();
//       if (!message) co_return;
//       const Result<void> sent = co_await socket.send(message->kind, message->bytes);
//       if (!sent) co_return;
//     }
//   }
//   ...
//   router.get("/echo", [&](http::Exchange asked) { scope.spawn(echo(std::move(asked))); });
//
// Ownership: it owns the http::WebSocket and is its handler; it does not move. Destroying it says
// going_away, sends what was written, and closes; nobody may be waiting then. A task that is
// cancelled does so at whatever it waits for.
// Threads: the loop's thread only.
// One coroutine may receive, one wait to send, and one close, at a time. What was received is valid
// until the coroutine waits for anything: copy what has to last. A receive that is given up has
// taken nothing; what was sent stays queued.
// Back-pressure: send() waits while the queue is full. While nobody receives, nothing is read: no
// message, no answer to a ping, and no goodbye. Who only sends lets another task receive beside
// him. Pings, deadlines and limits are those of WebSocketOptions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "spate/coro/conversation.h"
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

// A message, or with MessageView::parts a part of one, as WebSocketHandler::on_part() has it.
struct Message {
  Bytes bytes;
  http::MessageKind kind = http::MessageKind::text;
  bool is_last = true;
};

class SPATE_EXPORT WebSocket final : http::WebSocketHandler, Conversation {
 public:
  using Conversation::Wait;
  class Connect;
  class Receive;
  class Close;

  // Of nobody yet: one accept() or connect() follows.
  WebSocket() = default;
  ~WebSocket() = default;

  // Answers a request, as http::WebSocket::accept(). Errors, of which the client was told, and
  // which are what the others give then: those of that.
  std::error_code accept(http::Exchange exchange, const http::WebSocketOptions& options = {});

  // co_await: asks a server for one, until it has agreed. `client` is one of the task's loop and
  // has to last until then. Errors: those of http::WebSocket::connect() and of
  // WebSocketHandler::on_closed(); CallOptions::deadline is that of all this. A connect that is
  // given up is cancelled.
  Connect connect(http::Client& client, std::string_view url);
  Connect connect(http::Client& client, std::string_view url,
                  const http::WebSocketOptions& options);
  // With options of the call, which are taken: std::move() those that have a name
  // (coroutine-compilers.md).
  Connect connect(http::Client& client, std::string_view url, const http::WebSocketOptions& options,
                  http::CallOptions&& call);

  // co_await: the next message. Errors: Error::ended when both sides have said goodbye
  // (close_code()); else those of WebSocketHandler::on_closed(); ENOMEM.
  Receive receive();

  // co_await: sends it, and if the queue is full after that waits until it has drained. A text must
  // be UTF-8. Errors: EPIPE, it was not sent, as one side has begun to close it; ENOBUFS, it was
  // not sent for another reason of http::WebSocket::send(); what has closed the connection.
  Wait send(http::MessageKind kind, Bytes bytes);
  Wait send(std::string_view text) { return send(http::MessageKind::text, bytes_of(text)); }
  // The same of a message in parts; nothing else is sent before its last.
  Wait send_part(http::MessageKind kind, Bytes bytes, bool is_last);
  // co_await: until the queue has drained, if it is full.
  Wait drained() { return {*this, Wait::For::room}; }

  // co_await: says goodbye, and waits until the other side has said so, too, for at most
  // WebSocketOptions::close_timeout: its code. `code` and `reason` as in http::WebSocket::close().
  // Messages that come meanwhile are thrown away. Errors: Error::deadline, and what else
  // on_closed() has; EPIPE if it never was open. A close that is given up goes on by itself for as
  // long as the WebSocket is there.
  Close close(http::CloseCode code = http::CloseCode::normal, std::string_view reason = {});

  // What the other side has said at the end: abnormal before it, and if it has said nothing.
  http::CloseCode close_code() const { return code_; }
  std::string_view close_reason() const { return {reason_.data(), reason_size_}; }

  // For the protocol, topics, pings, addresses, and sending without waiting. Its pause() and
  // resume() are this one's to call; after its abort() nobody who waits is told.
  http::WebSocket& socket() { return socket_; }

 private:
  void on_open() override;
  void on_message(Bytes bytes, http::MessageKind kind) override;
  void on_part(Bytes bytes, http::MessageKind kind, bool is_last) override;
  void on_drained() override;
  void on_closed(http::CloseCode code, std::string_view reason, std::error_code error) override;

  void pause() override;
  void resume() override;
  void give_up() override;
  bool is_full() const override;
  std::error_code end_of_input() const override;

  std::error_code start(Result<http::WebSocket> made);
  Wait wait_for_room(bool was_sent);

  http::WebSocket socket_;
  http::CloseCode code_ = http::CloseCode::abnormal;
  std::uint8_t reason_size_ = 0;
  std::array<char, 123> reason_{};
};

// What connect() gives to co_await.
class SPATE_EXPORT WebSocket::Connect : public Wait {
 public:
  Connect(WebSocket& socket, std::error_code error)
      : Wait(socket, For::beginning, error), socket_(socket) {}
  ~Connect() { cancel(); }

  void cancel();

 private:
  WebSocket& socket_;
};

// What receive() gives to co_await.
class SPATE_EXPORT WebSocket::Receive : public Read {
 public:
  using Read::Read;

  Result<Message> await_resume();
};

// What close() gives to co_await.
class SPATE_EXPORT WebSocket::Close : public Wait {
 public:
  Close(WebSocket& socket, std::error_code error)
      : Wait(socket, For::end, error), socket_(socket) {}

  Result<http::CloseCode> await_resume();

 private:
  WebSocket& socket_;
};

}  // namespace spate::coro
