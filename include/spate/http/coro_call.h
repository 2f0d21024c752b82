// Call: a request of a Client. A coroutine reads its response in pieces, and may write its body in
// pieces. Needs spate::http. The namespace is that of the other awaitables (coro/). For a response
// that fits into memory, coro::fetch() (coro.h) is simpler.
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
// call; no coroutine may be waiting on it then. The Client must belong to the task's loop, and must
// outlive the wait: its destruction does not resume the task.
// Threads: the loop's thread only.
// At most one coroutine reads, one waits for the response, and one waits to send, at a time. Bytes
// that were read are valid until the coroutine next waits: copy them to keep them. A cancelled read
// consumes nothing.
// Back-pressure: while no coroutine reads, nothing is read from the connection, and the server
// waits. CallOptions::deadline, which covers the whole call, keeps running. send() waits while the
// queue is full.
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

  // Begins the call, as http::Client::send(). `options` must have no `upgrade` (asserted).
  Call(http::Client& client, std::string_view url, http::CallOptions options = {});
  ~Call() = default;

  // co_await: returns the status and fields of the response, of any status; valid while this object
  // exists. Later calls return at once. Errors: those of http::Client::fetch(); ENOMEM.
  Head response();
  // co_await: returns the next bytes of the body, at least one; empty at the end. Errors: as above,
  // at any time.
  ReadPiece read() { return read_piece(); }
  // co_await: returns the next message, in one piece, as coro::Stream::read(). After an error
  // read() returns the remaining bytes. Errors: Error::ended if the body ended before the message;
  // Error::truncated if it ended inside; EBADMSG if the framing is broken; EMSGSIZE if the message
  // is longer than set_max_message() allows; as above.
  template <class Framing>
  Task<Result<Bytes>> read(Framing framing) {
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

  // co_await, with CallOptions::upload: calls http::Call::write(), and waits for the queue to drain
  // if it is then full. Errors: EPIPE if it was not written; the error that ended the call.
  Wait send(Bytes bytes);
  Wait send(std::string_view text) { return send(bytes_of(text)); }
  // co_await: waits until the queue has drained, if it is full.
  Wait drained() { return {*this, Wait::For::room}; }
  // Calls http::Call::end(). Never waits.
  bool end(http::Fields trailers = {}) { return call_.end(std::move(trailers)); }

  // Returns the http::Call, for inspection. Do not call its pause() and resume(), which are used
  // internally. After its cancel() waiting coroutines are not resumed.
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
  void abort_connection() override;
  bool is_full() const override;
  std::error_code end_of_input() const override;

  http::Call call_;
  const http::Response* response_ = nullptr;  // Points into the call.
  http::Fields trailers_;
  bool lacks_memory_ = false;
};

// The awaitable of response().
class SPATE_EXPORT Call::Head : public Wait {
 public:
  explicit Head(Call& call) : Wait(call, For::beginning), call_(call) {}

  Result<const http::Response*> await_resume();

 private:
  Call& call_;
};

inline Call::Head Call::response() { return Head(*this); }

}  // namespace spate::coro
