// Exchange: a request that a coroutine answers in pieces, and whose body it reads in pieces. Needs
// spate::http; the namespace is that of the other awaitables (coro/). What has room in memory is
// simpler with coro::read_body() and respond() (coro.h).
//
//   coro::Task<Result<void>> shout(http::Exchange asked) {
//     coro::Exchange exchange(std::move(asked));
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
// Ownership: it owns the http::Exchange, and the duty to answer, and is its handler; it does not
// move. Destroying it is destroying the Exchange: 500 if it was not answered, a reset in the middle
// of an answer; nobody may be waiting then. A Server that is destroyed tells nobody: who waits is
// to be cancelled, by the end of his Scope for instance. Threads: the loop's thread only. One
// coroutine may read, and one wait to send, at a time. What was read is valid until the coroutine
// waits for anything: copy what has to last. A read that is given up has taken nothing; what was
// sent stays queued. Back-pressure: send() waits while the queue is full. While nobody reads the
// body, nothing is read of it, and the loss of an HTTP/1 client is first seen by sending. Without a
// body, and behind it, it is seen by the next send().
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

  explicit Exchange(http::Exchange asked);
  ~Exchange() = default;

  const http::Request& request() const { return exchange_.request(); }
  // To answer: begin(), respond(), inform(); for limits. Its start(), pause() and resume() are this
  // one's to call; after its abort() nobody who waits is told.
  http::Exchange& exchange() { return exchange_; }

  // co_await: the next piece of the body, at least one byte; none at its end, and of a request
  // without a body. The first read asks the client for it ("100 Continue"), unless the answer has
  // begun. Errors: EPIPE if the exchange is over; those of ExchangeHandler::on_closed(); ENOMEM.
  ReadPiece read();
  // The same of messages, as coro::Stream::read(): the next one, in one piece. Errors:
  // Error::ended, the body has ended before it; Error::truncated, inside it; EBADMSG, the framing
  // is broken; EMSGSIZE, it is longer than set_max_message() allows; as above. read() then gives
  // what is left.
  template <class Framing>
  Task<Result<Bytes>> read(Framing framing) {
    hear();
    return read_message(std::move(framing));
  }
  // The same of `count` bytes, at least 1.
  Task<Result<Bytes>> read_exactly(std::size_t count) { return read(FixedSize{count}); }
  // How long a message may be, with its framing; 16 MiB at first (kMaxMessage). From the next
  // read(framing) on. What waits for the rest of one takes so much memory; pieces are not bound.
  using Body::kMaxMessage;
  using Body::set_max_message;
  // What came behind the body, once it has ended; usually none.
  const http::Fields& trailers() const { return trailers_; }

  // co_await: Exchange::write(), and if the queue is full after that, until it has drained. Errors:
  // EPIPE, it was not written; what has closed the exchange.
  Wait send(Bytes bytes);
  Wait send(std::string_view text) { return send(bytes_of(text)); }
  // co_await: until the queue has drained, if it is full.
  Wait drained();
  // Exchange::end(): never waits.
  bool end(const http::Fields& trailers = {}) { return exchange_.end(trailers); }

 private:
  void on_body(Bytes bytes) override;
  void on_body_end(const http::FieldsView& trailers) override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  void pause() override;
  void resume() override;
  void give_up() override;
  bool is_full() const override;
  std::error_code end_of_input() const override;

  void hear();

  http::Exchange exchange_;
  http::Fields trailers_;
  bool is_heard_ = false;
  bool has_body_left_ = false;
};

}  // namespace spate::coro
