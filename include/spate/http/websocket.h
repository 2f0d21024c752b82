// WebSocket: messages both ways on a connection that began as HTTP (RFC 6455), as a server or as a
// client.
//
//   struct Echo : WebSocketSession {                                      // websocket_sessions.h
//     void on_message(MessageKind kind, Bytes bytes) override { socket().send(kind, bytes); }
//   };
//   WebSocketSessions<Echo> echoes(*loop);
//   router.get("/echo", [&](Exchange exchange) { echoes.accept(std::move(exchange)); });
//
// Ownership: a WebSocket is a handle, as a Stream is; moving it moves the connection. Destroying it
// sends the queue and a close frame with going_away, and closes; no callback follows. Its Exchange,
// Server and Client may be destroyed before it, and so may the loop, which closes it. There are two
// exceptions: a WebSocket that is still connecting ends with its Client; one that is a stream of an
// HTTP/2 connection (RFC 8441) ends with that connection, its Server or its Client.
// Threads: the loop's thread only.
// Callbacks: a WebSocketHandler's functions, called by the loop and never from inside a call to the
// WebSocket. Inside them everything is allowed, destroying the WebSocket and the handler included;
// the arguments stay valid until the callback returns.
// Draining: Server::drain() closes the WebSockets of the Server with going_away, as close() does.
// WebSockets that are left after its grace are reset with Error::deadline.
//
// The library handles frames: it responds to pings, closes with the right code on a protocol error,
// checks that texts are UTF-8, and masks with random bytes as a client.
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
  // Called once, before any other function, when the server has accepted; for clients only.
  virtual void on_open() {}
  // Receives a message, which may be empty. A text is valid UTF-8.
  virtual void on_message(MessageKind /*kind*/, Bytes /*bytes*/) {}
  // With MessageView::parts, receives a piece of a message, in place of on_message(). Pieces are
  // passed in as they arrive, independent of the peer's frames; only the last may be empty. A
  // character of a text may be split between two. A compressed message is one piece.
  virtual void on_part(MessageKind /*kind*/, Bytes /*bytes*/, bool /*is_last*/) {}
  // Called for a pong: the response to ping(), or, with empty `bytes`, to a ping of
  // WebSocketOptions::ping_after.
  virtual void on_pong(Bytes /*bytes*/) {}
  // Called when is_full() is no longer true: resume writing.
  virtual void on_drained() {}
  // Called last, exactly once. `code` and `reason` are those of the peer's close frame: no_code if
  // it had none, abnormal if the connection ended without a close frame. There is no error if both
  // sides sent one. Otherwise:
  // - EPROTO, EILSEQ (a text is not UTF-8) or EMSGSIZE (max_message): the peer violated the
  //   protocol, and was sent the code;
  // - Error::idle_timeout: it does not respond to pings;
  // - HttpError::exception: an exception left a function of this handler, and the peer was sent
  //   internal_error (ServerOptions::on_exception);
  // - Error::deadline: it does not respond to close(), or the grace of Server::drain() is over;
  // - ECONNRESET: EOF without a close frame;
  // - other errors that end a Stream.
  //
  // For a client before on_open(): HttpError::not_upgraded if the server refused, ECANCELED if the
  // Client was destroyed or close() was called, and the errors that end a Call.
  virtual void on_closed(CloseCode code, std::string_view reason, std::error_code error) = 0;

 protected:
  ~WebSocketHandler() = default;
};

// Which web pages may connect. A browser connects on behalf of any page, and sends the user's
// cookies, but also the page's origin.
enum class Origins : std::uint8_t {
  same,  // Pages of the requested host, and clients that are not browsers; others get 403.
  any,
};

// Whether messages may be compressed (permessage-deflate), if the peer agrees. Do not compress
// messages that mix secrets with attacker-controlled input: their length reveals the secret.
enum class WebSocketCompression : std::uint8_t {
  none,
  each_message,  // Each message by itself: no compression state is kept between messages.
};

struct WebSocketOptions {
  // Bytes of a message, decompressed; a longer one closes the connection with message_too_big. With
  // MessageView::parts this applies only to compressed messages.
  std::size_t max_message = 1 << 20;
  MessageView view = MessageView::whole;

  // As Stream::set_limits(). With WhenFull::drop, messages are dropped, but pings, pongs and close
  // frames are not.
  QueueLimits limits{};

  // A ping is sent when nothing arrived for this long, or up to twice as long. If nothing arrives
  // for as long again, the connection is closed. Zero is none.
  Nanos ping_after{30'000'000'000};
  // How long the peer may take to respond to close(), and then to end the connection.
  Nanos close_timeout{5'000'000'000};

  // Supported subprotocols, most preferred first. A server selects the first one that the client
  // offers, or none; a client offers all.
  std::vector<std::string> protocols{};
  Origins origins = Origins::same;  // For servers.

  WebSocketCompression compression = WebSocketCompression::none;
  std::size_t compress_from = 256;  // Bytes; shorter messages are sent uncompressed.

  bool operator==(const WebSocketOptions&) const = default;
};

class SPATE_EXPORT WebSocket {
 public:
  // Behaves as a closed WebSocket: sends nothing, and makes no calls.
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

  // Accepts the upgrade request of `exchange`, or sends an error response (400, 403, 405, 426,
  // 503). `handler` must outlive the WebSocket, or its on_closed(). Nothing is read before the
  // loop's next turn. Errors, after a response was sent: EPROTO, EACCES (its origin), ECANCELED
  // (the Server drains). Other errors: EPIPE if the exchange is over; ENOMEM.
  [[nodiscard("destroying the WebSocket closes it")]]
  static Result<WebSocket> accept(Exchange exchange, WebSocketHandler& handler,
                                  const WebSocketOptions& options = {});

  // Connects to a server: "ws://host/path", or "wss:" with a Client that has TLS. `call` has
  // further fields, proxies and the deadline of the whole. The WebSocket is open at once, but not
  // writable before on_open(). A failure is reported to on_closed(). Errors:
  // HttpError::invalid_url, HttpError::unknown_scheme; EINVAL for a protocol that is not a token,
  // or a method, a body or an upgrade in `call`; ENOMEM.
  [[nodiscard("destroying the WebSocket closes it")]]
  static Result<WebSocket> connect(Client& client, std::string_view url, WebSocketHandler& handler,
                                   const WebSocketOptions& options = {}, CallOptions call = {});

  // True until on_closed(), abort(), or the loop's end.
  bool is_open() const;
  // True if it is open, connected, and neither side has begun to close.
  bool is_writable() const;
  // Returns the negotiated subprotocol, one of WebSocketOptions::protocols; empty if none.
  std::string_view protocol() const;

  // ---- sending. The functions return false and send nothing if the WebSocket is not writable, if
  // the message does not fit (WhenFull::drop), in the middle of a message that is sent in parts,
  // and when memory runs out. The caller must pass valid UTF-8 as text; otherwise the peer closes
  // the connection.

  bool send(MessageKind kind, Bytes bytes);
  bool send(std::string_view text) { return send(MessageKind::text, bytes_of(text)); }
  // As above, without compression; a server does not copy the bytes. If it returns false, they are
  // still in `buffer`.
  bool send(MessageKind kind, Buffer&& buffer);
  // Sends a part of a message, uncompressed. The kind is that of the first part.
  bool send_part(MessageKind kind, Bytes bytes, bool is_last);
  // Sends a ping with at most 125 bytes (asserted).
  bool ping(Bytes bytes = {});

  // Return the number of queued bytes; and true from the time when more than `high` bytes were
  // queued until the queue is down to `low`.
  std::size_t queued() const;
  bool is_full() const;

  // ---- receiving

  // While paused, nothing is read: no message, no pong, no close frame.
  void pause();
  void resume();

  // ---- ending

  // Sends a close frame after the queued messages, and waits for the peer's. No message is reported
  // after it, only on_closed(). Resumes a paused WebSocket. The code must be one that may be sent,
  // and the reason UTF-8 of at most 123 bytes (asserted). While connecting, cancels, and
  // on_closed() gets ECANCELED. Has no effect when called again, or after the peer's close frame.
  void close(CloseCode code = CloseCode::normal, std::string_view reason = {});
  // Resets the connection. No callback follows.
  void abort();

  // Return the underlying Stream, for addresses and statistics (an empty one while connecting), and
  // the loop. Must not be called on an empty WebSocket.
  const Stream& stream() const;
  Loop& loop() const;

 private:
  friend class WebSocketState;
  explicit WebSocket(WebSocketState* state) : state_(state) {}
  void leave();

  WebSocketState* state_ = nullptr;
};

}  // namespace spate::http
