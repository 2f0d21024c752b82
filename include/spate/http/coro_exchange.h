// Exchange: a request to which a coroutine responds in pieces, and whose body it reads in pieces.
// Needs spate::http. The namespace is that of the other awaitables (coro/). For bodies that fit
// into memory, coro::read_body() and respond() (coro.h) are simpler.
//
//   coro::Task<Result<void>> shout(http::Exchange request) {
//     coro::Exchange exchange(std::move(request));
//     Bytes piece = co_await coro::or_return(exchange.read());
//     exchange.exchange().begin(http::Status::ok);
//     while (!piece.empty()) {
//       co_await coro::or_return(exchange.send(in_capitals(piece)));
//       piece = co_await coro::or_return(exchange.read());
//     }
//     exchange.end();
//     co_return {};
//   }
//
// Ownership: it owns the http::Exchange, with the duty to respond, and is its handler; it does not
// move. Destroying it destroys the Exchange: 500 if there was no response, a reset in the middle of
// one. No coroutine may be waiting on it then. Destroying the Server does not resume waiting
// coroutines: cancel them, for instance by the end of their Scope.
// Threads: the loop's thread only.
// At most one coroutine reads, and one waits to send, at a time. Bytes that were read are valid
// until the coroutine next waits: copy them to keep them. A cancelled read consumes nothing; bytes
// that were sent stay queued.
// Back-pressure: send() waits while the queue is full. While no coroutine reads the body, nothing
// of it is read from the connection, and the loss of an HTTP/1 client is noticed only by sending.
// Without a body, and after its end, the next send() notices the loss.
#pragma once

#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/coro_body.h"
#include "spate/http/exchange.h"
#include "spate/http/fields.h"
#include "spate/http/request.h"
#include "spate/net/bytes.h"

namespace spate::coro {

class SPATE_EXPORT Exchange final : http::ExchangeHandler, Body {
 public:
  using Body::ReadPiece;
  using Body::Wait;

  explicit Exchange(http::Exchange request);
  ~Exchange() = default;

  const http::Request& request() const { return exchange_.request(); }
  // Returns the http::Exchange, for begin(), respond(), inform() and limits. Do not call its
  // start(), pause() and resume(), which are used internally. After its abort() waiting coroutines
  // are not resumed.
  http::Exchange& exchange() { return exchange_; }

  // co_await: returns the next bytes of the body, at least one; empty at the end, and for a request
  // without a body. The first read sends "100 Continue" to a client that waits for it, unless the
  // response has begun. Errors: EPIPE if the exchange is over; those of
  // ExchangeHandler::on_closed(); ENOMEM.
  ReadPiece read();
  // co_await: returns the next message, in one piece, as coro::Stream::read(). After an error
  // read() returns the remaining bytes. Errors: Error::ended if the body ended before the message;
  // Error::truncated if it ended inside; EBADMSG if the framing is broken; EMSGSIZE if the message
  // is longer than set_max_message() allows; as above.
  template <class Framing>
  Task<Result<Bytes>> read(Framing framing) {
    start_receiving();
    return read_message(std::move(framing));
  }
  // co_await: returns the next `count` bytes, at least 1. Errors: as above.
  Task<Result<Bytes>> read_exactly(std::size_t count) { return read(FixedSize{count}); }
  // Limits the length of a message with its framing; initially 16 MiB (kMaxMessage). Applies from
  // the next read(framing) on. An incomplete message takes up to that much memory; plain read() has
  // no limit.
  using Body::kMaxMessage;
  using Body::set_max_message;
  // Returns the trailers, once the body has ended; usually none.
  const http::Fields& trailers() const { return trailers_; }

  // co_await: calls Exchange::write(), and waits for the queue to drain if it is then full. Errors:
  // EPIPE if it was not written; the error that closed the exchange.
  Wait send(Bytes bytes);
  Wait send(std::string_view text) { return send(bytes_of(text)); }
  // co_await: waits until the queue has drained, if it is full.
  Wait drained();
  // Calls Exchange::end(). Never waits.
  bool end(const http::Fields& trailers = {}) { return exchange_.end(trailers); }

 private:
  void on_body(Bytes bytes) override;
  void on_body_end(const http::FieldsView& trailers) override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  void pause() override;
  void resume() override;
  void abort_connection() override;
  bool is_full() const override;
  std::error_code end_of_input() const override;

  void start_receiving();

  http::Exchange exchange_;
  http::Fields trailers_;
  bool is_started_ = false;
  bool has_body_left_ = false;
};

}  // namespace spate::coro
