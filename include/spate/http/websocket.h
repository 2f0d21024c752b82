// WebSocket: messages both ways on a connection that began as HTTP (RFC 6455), as a server or as a
// client.
//
//   struct Echo : WebSocketSession {                                      // websocket_sessions.h
//     void on_message(Bytes bytes, MessageKind kind) override { socket().send(kind, bytes); }
//   };
//   WebSocketSessions<Echo> echoes(*loop);
//   router.get("/echo", [&](Exchange exchange) { echoes.accept(std::move(exchange)); });
//
// Ownership: a WebSocket is a handle, as a Stream is; moving it moves the connection. Destroying it
// says going_away, sends what was written, and closes; no callback follows. The Exchange, the
// Server and the Client that it came from may go before it, and so may the loop, which closes it.
// (One that is still connecting ends with its Client. Of HTTP/2, RFC 8441, it is one stream of a
// connection, and ends with that: with the Server, or the Client.)
// Threads: the loop's thread only.
// Callbacks: a WebSocketHandler's functions, called by the loop and never from inside a call to the
// WebSocket. Inside them everything is allowed, destroying the WebSocket and the handler included;
// what a callback was given stays valid until it returns.
// Draining: Server::drain() closes those that the Server has accepted with going_away, as close()
// does; those that are still there when its grace is over are reset, and told Error::deadline.
//
// Frames are the library's: it answers pings, closes with the right code what breaks the protocol,
// checks that texts are UTF-8, and masks with random bytes what a client sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/call.h"
#include "spate/http/exchange.h"
#include "spate/http/websocket_code.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

class Client;
class WebSocketState;

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT WebSocketHandler {
 public:
  // The server has agreed; of a client only, once, before anything else.
  virtual void on_open() {}
  // A message, which may be empty. A text is UTF-8.
  virtual void on_message(Bytes /*bytes*/, MessageKind /*kind*/) {}
  // With MessageView::parts, in place of on_message(): a piece as it has come, whatever the other
  // side's frames; only the last may be empty. A character of a text may lie in two. (A compressed
  // message is one piece.)
  virtual void on_part(Bytes /*bytes*/, MessageKind /*kind*/, bool /*is_last*/) {}
  // The answer to a ping(), and to those by WebSocketOptions::ping_after, which are empty.
  virtual void on_pong(Bytes /*bytes*/) {}
  // is_full() is over: go on writing.
  virtual void on_drained() {}
  // The last call, once. `code` and `reason` are what the other side has said: no_code if it has
  // said nothing, abnormal if the connection has ended without a word. There is no error when both
  // have said so, else why: EPROTO, EILSEQ (a text is not UTF-8) or EMSGSIZE (max_message) if the
  // other side has broken the rules, and was told; Error::idle_timeout if it does not answer
  // pings; Error::deadline if it does not answer close(), or the grace of Server::drain() is
  // over; ECONNRESET if it ends unsaid, and what
  // else ends a Stream. Of a client that never was on_open(): HttpError::not_upgraded if the server
  // does not want to, ECANCELED if the Client was destroyed before, and what ends a Call.
  virtual void on_closed(CloseCode code, std::string_view reason, std::error_code error) = 0;

 protected:
  ~WebSocketHandler() = default;
};

// Which pages may connect. A browser connects for any page, whoever made it, and sends the user's
// cookies; the page's origin it sends, too.
enum class Origins : std::uint8_t {
  same,  // Those of the host that is asked; the others are answered 403. And what is no browser.
  any,
};

// Whether messages may be compressed (permessage-deflate), if the other side agrees. Not what has
// secrets together with what a stranger chooses: its length tells.
enum class WebSocketCompression : std::uint8_t {
  none,
  each_message,  // By itself: what waits between messages is nothing.
};

struct WebSocketOptions {
  // Bytes of one, decompressed; beyond it, the connection is closed with message_too_big. Of those
  // in parts only if they are compressed.
  std::size_t max_message = 1 << 20;
  MessageView view = MessageView::whole;

  // As Stream::set_limits(). With WhenFull::drop, messages are dropped, and pings, their answers
  // and the close are not.
  QueueLimits limits{};

  // A ping, when nothing has come for that long, or up to twice as long; if nothing comes for as
  // long again, the connection is closed. Zero is none.
  Nanos ping_after{30'000'000'000};
  // How long the other side may take to answer close().
  Nanos close_timeout{5'000'000'000};

  // Those that are spoken, the best first: a server takes the first that the client names, or none;
  // a client names all of them.
  std::vector<std::string> protocols{};
  Origins origins = Origins::same;  // Of a server.

  WebSocketCompression compression = WebSocketCompression::none;
  std::size_t compress_from = 256;  // Bytes; shorter messages are sent as they are.

  bool operator==(const WebSocketOptions&) const = default;
};

class SPATE_EXPORT WebSocket {
 public:
  // Behaves as a closed one: nothing is sent, and nobody is told anything.
  WebSocket() = default;
  WebSocket(WebSocket&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  WebSocket& operator=(WebSocket&& other) noexcept {
    WebSocket moved(std::move(other));
    std::swap(state_, moved.state_);
    return *this;
  }
  ~WebSocket() {
    if (state_ != nullptr) leave();
  }

  // Answers a request: goes on as a WebSocket, or says why not (400, 403, 405, 426, 503).
  // `handler` must outlive the WebSocket, or its on_closed(). Nothing is read before the loop's
  // next turn. Errors, of which the client has been told: EPROTO, EACCES (its origin), ECANCELED
  // (the Server drains); EPIPE if the exchange is over; ENOMEM.
  [[nodiscard("destroying the WebSocket closes it")]]
  static Result<WebSocket> accept(Exchange exchange, WebSocketHandler& handler,
                                  const WebSocketOptions& options = {});

  // Asks a server for one: "ws://host/path", or "wss:" with a Client that has TLS. `call` has
  // further fields, proxies and the deadline of all this. The WebSocket is open at once: what is
  // written before on_open() is refused. It fails in on_closed(). Errors: EINVAL for a URL of
  // another scheme, a protocol that is no token, or a method, a body or an upgrade in `call`;
  // ENOMEM.
  [[nodiscard("destroying the WebSocket closes it")]]
  static Result<WebSocket> connect(Client& client, std::string_view url, WebSocketHandler& handler,
                                   const WebSocketOptions& options = {}, CallOptions call = {});

  // Until on_closed(), abort(), or the loop's end.
  bool is_open() const;
  // Open, not connecting any more, and neither side has begun to close it.
  bool is_writable() const;
  // The subprotocol, one of WebSocketOptions::protocols; empty if there is none.
  std::string_view protocol() const;

  // ---- sending. False, and nothing is sent: not writable; WhenFull::drop, and it does not fit; in
  // the middle of a message that is sent in parts; memory runs out. That a text is UTF-8 is up to
  // the caller: else the other side closes the connection.

  bool send(MessageKind kind, Bytes bytes);
  bool send(std::string_view text) { return send(MessageKind::text, bytes_of(text)); }
  // A server does not copy it. If it returns false, the bytes are still in `buffer`. It is not
  // compressed.
  bool send(MessageKind kind, Buffer&& buffer);
  // A message in parts, none of them compressed; the kind is that of the first.
  bool send_part(MessageKind kind, Bytes bytes, bool is_last);
  // At most 125 bytes (asserted).
  bool ping(Bytes bytes = {});

  // Bytes that wait to be sent; and from more than `high` of them until `low`.
  std::size_t queued() const;
  bool is_full() const;

  // ---- receiving

  // While paused, nothing is read: no message, no answer to a ping, and no close.
  void pause();
  void resume();

  // ---- ending

  // Says goodbye, behind what was sent, and waits for the other side to say so, too; no message
  // follows, but on_closed(). One that is paused is resumed for it. The code must be one that may
  // be sent, and the reason UTF-8 of at most 123 bytes (asserted). Again, or when the other side
  // was first, it does nothing.
  void close(CloseCode code = CloseCode::normal, std::string_view reason = {});
  // Resets the connection. No callback follows.
  void abort();

  // That below it, for addresses and the like: an empty one while it connects. Not of a WebSocket
  // that is empty itself, as loop().
  const Stream& stream() const;
  Loop& loop() const;

 private:
  friend class WebSocketState;
  explicit WebSocket(WebSocketState* state) : state_(state) {}
  void leave();

  WebSocketState* state_ = nullptr;
};

}  // namespace spate::http
