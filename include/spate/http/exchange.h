// Exchange: a request received by a Server, and the handle for sending its response.
//
//   exchange.respond("hello\n");                                  // 200, text/plain
//   exchange.respond(Status::not_found);
//   exchange.respond(Status::ok, R"({"a":1})", "application/json");
//
// Ownership: a handle; moving it moves the duty to respond. Destroying it before a response sends
// 500. Destroying it in the middle of a response resets the connection (HTTP/2: the stream), so
// that a truncated response does not look complete. After end() it may be destroyed at any time. No
// callback follows.
// The functions of an Exchange return false or EPIPE if its connection has closed, if it was moved
// from, or if the response was already sent.
// Threads: the loop's thread only. From other threads: Loop::post(), offload().
// Callbacks: an ExchangeHandler's functions, called by the loop and never from inside a call to the
// Exchange. Inside them everything is allowed, destroying the Exchange, the handler and the server
// included.
//
// Responses: respond() sends a whole one; begin(), write() and end() send one in pieces, sized or
// chunked. A response sent inside on_request() needs no allocation. Responses to pipelined requests
// that are sent there leave together, in one send. The results of these functions may be ignored:
// after respond() or begin() has refused a response, destroying the Exchange sends 500, and the
// access log has the reason. If a part of a response cannot be sent, the connection (HTTP/2: the
// stream) is reset.
//
// Request bodies: read_body() collects the whole body; an ExchangeHandler receives it in pieces. If
// neither is used, the body is discarded after the response. "100 Continue" is sent when the body
// is first requested.
//
// Persistence: an HTTP/1 connection persists if the response began when the rest of the body was
// known to be at most 256 KiB. Otherwise the response carries `Connection: close` (HTTP/2: the
// client is asked to stop sending).
//
// The server sets the connection's own fields: Connection, Content-Length, Date, Keep-Alive, TE,
// Transfer-Encoding, Upgrade. A response with one of them in its Fields is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/attribute.h"
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

// One line of an access log. Views are valid until the callback returns.
struct AccessRecord {
  const Request& request;
  Status status;       // The status as it was sent, an upgrade's included; 499: no response was
                       // begun.
  std::uint64_t sent;  // Bytes of the body that were written, without dropped ones.
  std::uint64_t received;
  Nanos duration;  // From the last byte of the header section to the end of the exchange, by
                   // the clock.
  // Why the exchange ended early, if it did. EINVAL or ENOMEM with status 500: why the program's
  // response was refused. HttpError::exception: an exception left the handler.
  std::error_code error;
  // Why the server refused the request, as RefusedRequest::reason (server.h); otherwise empty.
  std::string_view reason{};
};

// Called before the header section of a response is sent, with its status. `added` are the fields
// of Exchange::add_field(); they may be changed. Must not use the Exchange.
using BeforeResponse = Function<void(Status status, Fields& added)>;
// Called at the end of an exchange, as ServerOptions::log (server.h).
using OnExchangeEnd = Function<void(const AccessRecord& record)>;

// Whether a response may be compressed.
enum class Compression : std::uint8_t {
  none,
  // Uses gzip if the client accepts it, the type is compressible (is_compressible(), media_type.h),
  // and the body has 1 KiB to 8 MiB or an unknown size. Responses with Content-Encoding,
  // Accept-Ranges or Content-Range, or Cache-Control: no-transform are sent unchanged. A strong
  // ETag becomes weak.
  by_type,
};

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT ExchangeHandler {
 public:
  // Receives bytes of the request's body, at least one, valid until it returns. All of them are
  // used up; pieces are passed in as they arrive, and chunks or frames are not joined. Call pause()
  // to stop.
  virtual void on_body(Bytes /*bytes*/) {}
  // Called when the whole body was received, with its trailers, usually none. Not called without a
  // body. Valid until it returns.
  virtual void on_body_end(const FieldsView& /*trailers*/) {}
  // Called when the client ended its side of the connection. It may have disconnected, or have sent
  // everything and wait for the response. A handler that waits for an event that may never happen
  // should end the exchange here.
  virtual void on_client_end() {}
  // Called when Exchange::is_full() is no longer true: resume writing.
  virtual void on_drained() {}
  // Called last, exactly once. No error if the response and the request's body are complete; queued
  // bytes are still sent. Otherwise the reason: ECONNRESET, EPIPE, Error::deadline, ...
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

  // Must not be called on an Exchange that was moved from.
  const Request& request() const;
  Loop& loop() const;
  // True if the connection is open and the response has not ended.
  bool is_open() const;

  // ---- whole responses. They return false and send nothing if there was a response, if the
  // connection is closed, if `fields` is incomplete or has one of the server's own, or when memory
  // runs out. The body is dropped where none is allowed: HEAD, 204, 304.

  bool respond(std::string_view text) { return respond(Status::ok, text); }
  bool respond(Status status);
  bool respond(Status status, std::string_view body, std::string_view content_type = kText);
  bool respond(Status status, const Fields& fields, Bytes body = {});
  // As above, without copying the body. If it returns false, the bytes are still in `body`. The
  // header section may have been sent then, if the connection was lost in between.
  bool respond(Status status, const Fields& fields, Buffer&& body);

  // Overrides ServerOptions::compression; call it before the response. Do not compress responses
  // that mix secrets with attacker-controlled input: their length reveals the secret (BREACH).
  void set_compression(Compression compression);

  // ---- responses in pieces

  // Sends the status and header section. With `size`, exactly that many bytes follow. Without, the
  // body lasts until end(): chunked, or, with HTTP/1.0, until the connection closes. False as
  // above.
  bool begin(Status status, const Fields& fields = {}, std::optional<std::uint64_t> size = {});
  // Sends bytes of the body. False if not begun, ended or closed, or if this exceeds `size`. If the
  // queue is full (Stream::write()), or when memory runs out, returns false and resets the
  // connection. Each piece of a compressed response can be decompressed at once, so larger pieces
  // compress better.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // As above. If it returns false, the bytes are still in `buffer`.
  bool write(Buffer&& buffer);
  // Sends a part of a file, as Stream::send_file(), also in a compressed response. Errors: as
  // there; EPIPE where write() returns false. If the file is too short or cannot be read, the
  // connection is reset.
  [[nodiscard("after an error the descriptor is yours, and the file is missing in the response")]]
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size,
                            ThreadPool& pool = ThreadPool::shared());
  // Ends the response. Trailers are sent if it is chunked, otherwise dropped. If fewer bytes than
  // `size` were written, resets the connection, as abort() does. False if not begun, already ended
  // or closed, or reset. Also returns false, and does nothing, if `trailers` has a field that is
  // not allowed there (RFC 9110 §6.5.1: framing, routing, conditions, credentials, content).
  bool end(const Fields& trailers = {});
  // Sends an interim (1xx) response such as 103. Does nothing on HTTP/1.0, and returns true.
  bool inform(Status status, const Fields& fields = {});

  // Return how many bytes wait to be sent, as Stream::queued(), and whether they are too many, as
  // Stream::is_full().
  std::size_t queued() const;
  bool is_full() const;

  // ---- the body of the request

  // Sets the handler for the body and the events; calling again replaces it. `handler` must outlive
  // the Exchange, or its on_closed(). False if the exchange is over: no function of the handler is
  // called then.
  bool start(ExchangeHandler& handler);
  // While paused, nothing is read, and the end of the body is not reported. The end or loss of an
  // HTTP/1 client is not noticed. With HTTP/2 both are noticed, and only this body waits.
  void pause();
  void resume();

  // ---- for middleware (middleware.h), which calls these before the handler is called. An Exchange
  // without them allocates nothing for them.

  // Adds a field to the response, also to that of upgrade(), beside the fields that the response
  // has itself; not to interim responses. False if the response has begun, if the connection is
  // closed, for one of the server's own fields, and as Fields::add(): the response is then refused,
  // and the client gets 500.
  bool add_field(FieldName name, std::string_view value);
  // Calls `function` before the header section of the response is sent. Several are called in the
  // order in which they were set. False if the response has begun, or when memory runs out.
  bool before_response(BeforeResponse function);
  // Calls `function` at the end of the exchange, from the loop. Several are called in the order in
  // which they were set, before ServerOptions::log. AccessRecord::duration is as of Loop::now(). If
  // the Server is destroyed first, the function is destroyed uncalled. False if the exchange is
  // over, or when memory runs out.
  bool on_end(OnExchangeEnd function);
  // Attaches a value, in place of one with the same key. Returns it, or nullptr if the exchange is
  // over, or when memory runs out.
  template <class T>
  T* set_attribute(const Attribute<T>& key, T value) {
    auto* node = new (std::nothrow) AttributeValue<T>(key, std::move(value));
    if (node == nullptr) return nullptr;
    return attach(node) ? &node->value : nullptr;
  }
  // Returns the value that was attached, or nullptr.
  template <class T>
  T* attribute(const Attribute<T>& key) {
    AttributeNode* node = find_attribute(&key);
    return node == nullptr ? nullptr : &static_cast<AttributeValue<T>*>(node)->value;
  }

  // Closes the connection (HTTP/2: resets the stream) with Error::deadline unless the exchange is
  // over by then; zero is none. ServerOptions limits the body's rate in any case. False when memory
  // runs out.
  bool set_deadline(Nanos timeout);
  // Resets the connection (HTTP/2: the stream). No callback follows.
  void abort();

  // Switches protocols and returns the connection as a Stream. Sends 101 with `Upgrade: protocol`,
  // or 200 to a CONNECT, for which `protocol` is empty. No other function may send these: any other
  // 2xx response to CONNECT, or over HTTP/2 to an upgrade, is sent as 501. Bytes that follow the
  // request are read from the Stream, once it is started. On an error the exchange continues.
  // Errors: EPIPE if there was a response, EPROTO if the client did not ask for it, or sent a body,
  // EINVAL if `fields` has one of the server's own, ENOMEM.
  //
  // With HTTP/2 it is one stream (RFC 8441: the request is presented as GET with Upgrade, and 200
  // is sent). The returned Stream is then in memory, has no peer address, and is reset with the
  // connection that carries it, or with the Server.
  [[nodiscard("a Stream without an owner is closed at once")]]
  Result<Stream> upgrade(std::string_view protocol, const Fields& fields = {});

 private:
  friend class ExchangeState;
  explicit Exchange(ExchangeState* state) : state_(state) {}
  void leave();
  bool attach(AttributeNode* node);  // Destroys it if it cannot.
  AttributeNode* find_attribute(const void* key) const;

  ExchangeState* state_ = nullptr;
};

using OnBody = Function<void(Exchange exchange, Bytes body)>;

// Receives the whole body, then calls `on_body`, from the loop; also for a request without a body.
// If the body is longer than `most` bytes, sends 413, at once if Content-Length shows it. If the
// client disconnects before the end, `on_body` is destroyed uncalled. `body` is valid until
// `on_body` returns.
SPATE_EXPORT void read_body(Exchange exchange, std::size_t most, OnBody on_body);

}  // namespace spate::http
