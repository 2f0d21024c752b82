// Call: a request of a Client's, whose answer a coroutine reads in pieces, and whose body it may
// write in pieces. Needs spate::http; the namespace is that of the other awaitables (coro/). An
// answer that has room in memory is simpler with coro::fetch() (coro.h).
//
//   coro::Task<Result<void>> download(http::Client* client, std::string url, File* file) {
//     coro::Call call(*client, url);
//     const http::Response* head = co_await coro::or_return(call.response());
//     if (!head->is_success()) co_return std::unexpected(error_of(head->status()));
//     for (;;) {
//       const Bytes piece = co_await coro::or_return(call.read());
//       if (piece.empty()) break;
//       file->append(piece);
//     }
//     co_return {};
//   }
//
// Ownership: it owns the http::Call and is its handler; it does not move. Destroying it cancels the
// call; nobody may be waiting then. The Client is one of the task's loop, and has to last as long
// as somebody waits: it tells nobody when it goes.
// Threads: the loop's thread only.
// One coroutine may read, one wait for the head, and one wait to send, at a time. What was read is
// valid until the coroutine waits for anything: copy what has to last. A read that is given up has
// taken nothing.
// Back-pressure: while nobody reads, nothing is, and the server waits; CallOptions::deadline, which
// is for everything together, goes on. send() waits while the queue is full.
#pragma once

#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/call.h"
#include "spate/http/client.h"
#include "spate/http/coro_body.h"
#include "spate/http/fields.h"
#include "spate/http/response.h"
#include "spate/net/bytes.h"

namespace spate::coro {

class SPATE_EXPORT Call final : http::CallHandler, Body {
 public:
  using Body::ReadPiece;
  using Body::Wait;
  class Head;

  // Begins it, as http::Client::send(). `options` have no `upgrade` (asserted).
  Call(http::Client& client, std::string_view url, http::CallOptions options = {});
  ~Call() = default;

  // co_await: the head of the answer, of any status; valid as long as this is. Again, it is there
  // at once. Errors: those of http::Client::fetch(); ENOMEM.
  Head response();
  // co_await: the next piece of its body, at least one byte; none at the end. Errors: as above,
  // whenever the call fails.
  ReadPiece read() { return read_piece(); }
  // The same of messages, as coro::Stream::read(): the next one, in one piece. Errors:
  // Error::ended, the body has ended before it; Error::truncated, inside it; EBADMSG, the framing
  // is broken; EMSGSIZE, it is longer than set_max_message() allows; as above. read() then gives
  // what is left.
  template <class Framing>
  Task<Result<Bytes>> read(Framing framing) {
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

  // With CallOptions::upload. co_await: http::Call::write(), and if the queue is full after that,
  // until it has drained. Errors: EPIPE, it was not written; what has ended the call.
  Wait send(Bytes bytes);
  Wait send(std::string_view text) { return send(bytes_of(text)); }
  // co_await: until the queue has drained, if it is full.
  Wait drained() { return {*this, Wait::For::room}; }
  // http::Call::end(): never waits.
  bool end(http::Fields trailers = {}) { return call_.end(std::move(trailers)); }

  // To look at. Its pause() and resume() are this one's to call; after its cancel() nobody who
  // waits is told.
  http::Call& call() { return call_; }

 private:
  void on_response(const http::Response& response) override;
  void on_body(Bytes bytes) override;
  void on_body_end(const http::FieldsView& trailers) override;
  void on_drained() override;
  void on_upgraded(const http::Response& response, spate::Stream stream) override;
  void on_closed(std::error_code error) override;

  void pause() override;
  void resume() override;
  void give_up() override;
  bool is_full() const override;
  std::error_code end_of_input() const override;

  http::Call call_;
  const http::Response* response_ = nullptr;  // Of the call.
  http::Fields trailers_;
  bool lacks_memory_ = false;
};

// What response() gives to co_await.
class SPATE_EXPORT Call::Head : public Wait {
 public:
  explicit Head(Call& call) : Wait(call, For::beginning), call_(call) {}

  Result<const http::Response*> await_resume();

 private:
  Call& call_;
};

inline Call::Head Call::response() { return Head(*this); }

}  // namespace spate::coro
