// WebSocketClient: a client's WebSocket that reconnects.
//
//   struct Feed : WebSocketClientHandler {
//     void on_open() override { socket.send("subscribe"); }   // For each connection.
//     void on_message(MessageKind, Bytes bytes) override { show(bytes); }
//     void on_closed(std::error_code) override {}
//     WebSocketClient socket;
//   };
//   feed.socket = must(WebSocketClient::connect(client, "wss://example.org/feed", feed));
//
// It reconnects after every end of a connection and every failed attempt, as spate::Client does:
// the delay doubles with each consecutive failure, random jitter shortens it, and a connection that
// ends within `steady_after` counts as a failure.
//
// Messages that are sent without a connection wait for one, up to `max_waiting` bytes, 14 of each
// message for its frame header. They are passed to it in order, as its queue has room; until then,
// further messages wait after them.
// Messages that were passed to a connection which then fails may be lost: repeat them in on_open()
// if the protocol needs it. The WebSocketClient sends no message twice.
//
// Ownership: a handle; moving it moves the connection. Destroying it closes, as ~WebSocket() does,
// and drops the messages that wait; no callback follows. The Client and the handler must outlive
// it.
// Threads: the loop's thread only.
// Callbacks: called by the loop, never from inside a function of the WebSocketClient. Inside them
// everything is allowed, destroying the WebSocketClient and the handler included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/client.h"
#include "spate/http/fields.h"
#include "spate/http/websocket.h"
#include "spate/time.h"

namespace spate::http {

class WebSocketClientState;

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT WebSocketClientHandler {
 public:
  // Called for each connection: log in, or subscribe again. Messages sent inside it are sent before
  // those that wait.
  virtual void on_open() {}
  // Receives a whole message. A text is valid UTF-8.
  virtual void on_message(MessageKind kind, Bytes bytes) = 0;
  // Called when the queue of the connection has drained, as WebSocketHandler::on_drained(), and no
  // message waits.
  virtual void on_drained() {}
  // Called when a connection has ended or an attempt has failed, with the arguments of
  // WebSocketHandler::on_closed(). WebSocketClient::retry_in() is the time to the next attempt.
  // After the last attempt on_closed() is called instead.
  virtual void on_lost(CloseCode /*code*/, std::string_view /*reason*/, std::error_code /*error*/) {
  }
  // Called last, at most once; the messages that wait were dropped. No error after close().
  // Otherwise that of the last attempt, after `max_failures`, or if no other attempt would help
  // (HttpError::https_without_tls). It is Error::ended if the server closed the last connection
  // without an error.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~WebSocketClientHandler() = default;
};

struct WebSocketClientOptions {
  WebSocketOptions socket{};  // Messages are whole: not MessageView::parts (asserted).
  // For the request of each connection, as in CallOptions.
  Fields fields{};
  std::optional<Credentials> credentials{};
  std::optional<Proxy> proxy{};
  Address address{};

  Nanos connect_timeout{30'000'000'000};  // An attempt, handshake included.
  Nanos first_delay{500'000'000};         // After one failure.
  Nanos max_delay{30'000'000'000};
  double jitter = 0.5;                    // The share of a delay that is random, 0 ... 1.
  Nanos steady_after{5'000'000'000};      // The end of an older connection resets the failures.
  std::uint32_t max_failures = 0;         // Stops after so many consecutive failures; 0: never.
  std::size_t max_waiting = 1024 * 1024;  // Bytes of frames that wait. 0: none may wait.
};

class SPATE_EXPORT WebSocketClient {
 public:
  // Behaves as a closed WebSocketClient.
  WebSocketClient() = default;
  WebSocketClient(WebSocketClient&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)) {}
  WebSocketClient& operator=(WebSocketClient&& other) noexcept {
    WebSocketClient moved(std::move(other));
    std::swap(state_, moved.state_);
    return *this;
  }
  ~WebSocketClient() {
    if (state_ != nullptr) leave();
  }

  // Connects, and stays connected. Errors: those of WebSocket::connect().
  [[nodiscard("destroying the WebSocketClient closes it")]]
  static Result<WebSocketClient> connect(Client& client, std::string_view url,
                                         WebSocketClientHandler& handler,
                                         WebSocketClientOptions options = {});

  // Sends a message, or queues it until there is a connection. False if it does not fit into the
  // queue (of the connection, or `max_waiting`), if the connection fails in this call, after
  // close() or on_closed(), and when memory runs out. With WhenFull::close, a message that does not
  // fit ends the connection. A message longer than `socket.limits.max` does not wait.
  bool send(MessageKind kind, Bytes bytes);
  bool send(std::string_view text) { return send(MessageKind::text, bytes_of(text)); }

  // Returns true if a connection is open and writable.
  bool is_open() const;
  // Returns the bytes of the frames that wait for a connection, or for room in its queue.
  std::size_t waiting() const;
  // Returns the time to the next attempt; zero unless waiting.
  Nanos retry_in() const;
  // Returns the number of consecutive failures.
  std::uint32_t failures() const;
  // Returns the present connection, for its protocol, queue and addresses. Without it, returns a
  // closed one, which may be empty. Valid until the next callback.
  const WebSocket& socket() const;

  // Closes the connection if there is one, as ~WebSocket() does, and connects at once. on_lost() is
  // not called, and no failure is counted. Does nothing after close() or on_closed().
  void reconnect();
  // Ends for good: closes the connection as WebSocket::close(), and drops the messages that wait.
  // on_closed() follows.
  void close(CloseCode code = CloseCode::normal, std::string_view reason = {});

 private:
  explicit WebSocketClient(WebSocketClientState* state) : state_(state) {}
  void leave();

  WebSocketClientState* state_ = nullptr;
};

}  // namespace spate::http
