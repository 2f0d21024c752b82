// Exchange: one request that a server has received, and the duty to answer it.
//
//   exchange.respond("hello\n");                                  // 200, text/plain
//   exchange.respond(Status::not_found);
//   exchange.respond(Status::ok, R"({"a":1})", "application/json");
//
// Ownership: a handle; moving it moves the duty. Destroying it unanswered answers 500; destroying
// it in the middle of an answer resets the connection (of HTTP/2: the stream), so that nobody takes
// a part for the whole; destroying it after end() is how it ends. No callback follows.
// An Exchange whose connection has closed, or that was moved from, or that has been answered,
// refuses: functions return false or EPIPE.
// Threads: the loop's thread only. From elsewhere: Loop::post(), offload().
// Callbacks: an ExchangeHandler's functions, called by the loop and never from inside a call to the
// Exchange. Inside them everything is allowed, destroying the Exchange, the handler and the server
// included.
//
// Answers: respond() sends one that is whole; begin(), write() and end() one in pieces, sized or
// chunked. What is answered inside on_request() costs no allocation, and leaves, together with the
// answers to what the client has pipelined, in one send.
// The body of the request is read by read_body(), whole, or by an ExchangeHandler, in pieces. If
// nobody asks for it, it is thrown away behind the answer, up to 256 KiB; a longer one closes the
// connection (of HTTP/2 the client is asked to stop). "100 Continue" is sent when the body is first
// asked for. The connection's own fields (Connection, Content-Length, Date, Keep-Alive, TE,
// Transfer-Encoding, Upgrade) are the server's: an answer with one of them in its Fields is
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/fields.h"
#include "spate/http/request.h"
#include "spate/http/status.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {
class Loop;
}

namespace spate::http {

class ExchangeState;

// Whether an answer may be compressed.
enum class Compression : std::uint8_t {
  none,
  // gzip, if its type becomes much shorter by it (is_compressible(), media_type.h), it has 1 KiB to
  // 8 MiB or is of no size, and the client accepts it. Answers with Content-Encoding, Accept-Ranges
  // or Content-Range, or Cache-Control: no-transform stay as they are. A strong ETag becomes weak.
  by_type,
};

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT ExchangeHandler {
 public:
  // A piece of the request's body, at least one byte, valid until it returns. It is used up: pieces
  // are as they come, and no two lie together (chunks, frames). Who can take no more calls pause().
  virtual void on_body(Bytes /*bytes*/) {}
  // The body has been received, with these fields behind it (chunked), usually none. Not called
  // without a body. Valid until it returns.
  virtual void on_body_end(const FieldsView& /*trailers*/) {}
  // The client has ended its side of the connection: it has gone, or only sends no more and waits
  // for its answer. Who waits for something that may never come gives up here.
  virtual void on_client_end() {}
  // Exchange::is_full() is over: go on writing.
  virtual void on_drained() {}
  // The last call, once: without an error when the answer and the request's body have ended; what
  // is queued is sent behind. Else with the reason: ECONNRESET, EPIPE, Error::deadline, ...
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~ExchangeHandler() = default;
};

class SPATE_EXPORT Exchange {
 public:
  static constexpr std::string_view kText = "text/plain; charset=utf-8";

  Exchange() = default;
  Exchange(Exchange&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Exchange& operator=(Exchange&& other) noexcept {
    Exchange moved(std::move(other));
    std::swap(state_, moved.state_);
    return *this;
  }
  ~Exchange() {
    if (state_ != nullptr) leave();
  }

  // Not of one that was moved from.
  const Request& request() const;
  Loop& loop() const;
  // The connection is there, and the answer has not ended.
  bool is_open() const;

  // ---- the answer, whole. False, and nothing is sent: answered or closed already; `fields` has
  // one of the server's own; memory runs out. A body is dropped where none may be: HEAD, 204, 304.

  bool respond(std::string_view text) { return respond(Status::ok, text); }
  bool respond(Status status);
  bool respond(Status status, std::string_view body, std::string_view content_type = kText);
  bool respond(Status status, const Fields& fields, Bytes body = {});
  // Without copying the body. If it returns false, the bytes are still in `body`; the head may have
  // been sent, if the connection was lost in between.
  bool respond(Status status, const Fields& fields, Buffer&& body);

  // In place of ServerOptions::compression; before the answer. Leave answers alone that have both
  // a secret and something that a stranger chooses: from their length he learns the secret
  // (BREACH).
  void set_compression(Compression compression);

  // ---- the answer, in pieces

  // Its head. With `size`, exactly that many bytes follow; without, as many as are written before
  // end(): chunked, or, of HTTP/1.0, until the connection's end. False as above.
  bool begin(Status status, const Fields& fields = {}, std::optional<std::uint64_t> size = {});
  // False: not begun, ended, closed, or more than `size`; or the queue is full as by
  // Stream::write(). Of a compressed answer each piece can be read at once, and larger ones become
  // shorter; if one cannot be sent, the connection is reset.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // If it returns false, the bytes are still in `buffer`.
  bool write(Buffer&& buffer);
  // As Stream::send_file(). EPIPE where write() returns false. A compressed answer reads it at
  // once.
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size);
  // Ends the answer; with trailers if it is chunked, else they are dropped. Fewer bytes than `size`
  // reset the connection, as abort() does. False: not begun, ended or closed already, or reset.
  bool end(const Fields& trailers = {});
  // An answer before the answer: 103, for instance; none in HTTP/1.0, which is no error.
  bool inform(Status status, const Fields& fields = {});

  // What waits to be sent, as Stream::queued(), and whether it is too much, as Stream::is_full().
  std::size_t queued() const;
  bool is_full() const;

  // ---- the body of the request

  // Sets who is told of the body, and of the rest; again, to replace it. `handler` must outlive the
  // Exchange, or its on_closed(). False if the exchange is over: then nobody is told anything.
  bool start(ExchangeHandler& handler);
  // While paused, nothing is read, nor is it told that the body has ended; and neither the end nor
  // the loss of the client is seen. Of HTTP/2 these two are, and only this body waits.
  void pause();
  void resume();

  // Closes the connection (of HTTP/2: resets the stream) with Error::deadline unless the exchange
  // is over by then; zero is none. The body's rate is watched anyway (ServerOptions). False when
  // memory runs out.
  bool set_deadline(Nanos timeout);
  // Resets the connection (of HTTP/2: the stream). No callback follows.
  void abort();

  // Takes the connection out of HTTP: answers 101 with `Upgrade: protocol`, or 200 to a CONNECT,
  // for which `protocol` is empty. What the client has sent behind its head is read from the
  // Stream, once it is started. Errors, with which the exchange goes on: EPIPE if it was answered,
  // EPROTO if the client has not asked for it, or has sent a body, EINVAL if `fields` has one of
  // the server's own, ENOMEM.
  //
  // Of HTTP/2 it is this one stream (RFC 8441: such a request is shown as GET with Upgrade, and
  // answered 200). The Stream is one in memory then, without a peer's address, and is reset with
  // the connection that carries it, or with the Server.
  Result<Stream> upgrade(std::string_view protocol, const Fields& fields = {});

 private:
  friend class ExchangeState;
  explicit Exchange(ExchangeState* state) : state_(state) {}
  void leave();

  ExchangeState* state_ = nullptr;
};

using OnBody = std::move_only_function<void(Exchange exchange, Bytes body)>;

// Receives the whole body, then calls `on_body`, from the loop; without a body too. With more than
// `most` bytes the client is answered 413, and if it goes away before the end nobody is told:
// `on_body` is destroyed uncalled. `body` is valid until `on_body` returns.
SPATE_EXPORT void read_body(Exchange exchange, std::size_t most, OnBody on_body);

}  // namespace spate::http
