// fetch(), read_body(): awaitable forms of the functions of that name in client.h and exchange.h.
// Needs spate::http. The namespace is that of the other awaitables (coro/).
//
//   coro::Task<Result<std::string>> title(http::Client* client) {
//     const http::Response page = co_await coro::or_return(coro::fetch(*client, kUrl));
//     co_return title_of(page.text());
//   }
//
//   coro::Task<void> respond(http::Exchange exchange) {
//     Result<coro::Received> request = co_await coro::read_body(std::move(exchange), 64 << 10);
//     if (request) request->exchange.respond(reply_to(text_of(request->body())));
//   }
//   ...
//   router.post("/", [&](http::Exchange exchange) { scope.spawn(respond(std::move(exchange))); });
//
// Threads: the loop's thread only.
#pragma once

#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/assert.h"
#include "spate/coro/callback_awaiter.h"
#include "spate/error.h"
#include "spate/http/call.h"
#include "spate/http/client.h"
#include "spate/http/exchange.h"
#include "spate/http/response.h"
#include "spate/loop.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::coro {

// ---- client

// Not for programs: begins the request of fetch().
inline Result<http::Call> begin_fetch([[maybe_unused]] Loop& loop, http::Client& client,
                                      std::string_view url, http::OnResponse on_response,
                                      http::CallOptions&& options) {
  SPATE_ASSERT(&client.loop() == &loop, "the Client is of another loop");
  http::Call call = client.fetch(url, std::move(on_response), std::move(options));
  if (call.is_open()) return call;
  return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
}

// co_await: sends a request and returns the whole response, of any status. Errors: those of
// http::Client::fetch(); ENOMEM. Cancelling the task cancels the call. The Client must belong to
// the task's loop, and must outlive the wait: its destruction does not resume the task.
inline auto fetch(http::Client& client, std::string_view url) {
  return CallbackAwaiter<Result<http::Response>>::of(
      [&client, url](Loop& loop, auto reply) { return begin_fetch(loop, client, url, reply, {}); });
}
// As above with options, which are moved: std::move() named ones (coroutine-compilers.md).
inline auto fetch(http::Client& client, std::string_view url, http::CallOptions&& options) {
  return CallbackAwaiter<Result<http::Response>>::of(
      [&client, url, &options](Loop& loop, auto reply) {
        return begin_fetch(loop, client, url, reply, std::move(options));
      });
}

// ---- server

// A request to respond to, and its body.
class Received {
 public:
  http::Exchange exchange;

  // Returns the body. Valid while this object, or the one it was moved to, exists.
  Bytes body() const { return flat_; }

 private:
  friend class ReadBody;
  explicit Received(http::Exchange request) : exchange(std::move(request)) {}
  bool store(Bytes body) {
    if (!buffer_.append(body)) return false;
    flat_ = buffer_.flat(body.size());
    return flat_.size() == body.size();
  }

  Buffer buffer_;
  Bytes flat_;
};

// The awaitable of read_body().
class ReadBody : public Operation<ReadBody> {
 public:
  ReadBody(http::Exchange&& exchange, std::size_t most) : exchange_(exchange), most_(most) {}
  ~ReadBody() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise&, Continuation continuation) {
    http::read_body(std::move(exchange_), most_, Reply(*this));
    if (reply_ == nullptr) return false;
    continuation_ = continuation;
    return true;
  }
  void cancel() {
    continuation_.cancel();
    if (reply_ != nullptr) std::exchange(reply_, nullptr)->forget();
  }
  Result<Received> await_resume() { return std::move(outcome_); }

 private:
  // The callback. The server destroys it, uncalled, when the exchange is over.
  class Reply {
   public:
    explicit Reply(ReadBody& wait) : wait_(&wait) { wait.reply_ = this; }
    Reply(Reply&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {
      if (wait_ != nullptr) wait_->reply_ = this;
    }
    Reply& operator=(Reply&&) = delete;
    ~Reply() {
      if (wait_ != nullptr) wait_->on_over();
    }

    void forget() { wait_ = nullptr; }
    // After a cancelled wait, the Exchange is destroyed here, which responds 500.
    void operator()(http::Exchange exchange, Bytes body) {
      if (wait_ != nullptr) std::exchange(wait_, nullptr)->on_body(std::move(exchange), body);
    }

   private:
    ReadBody* wait_;
  };

  void on_body(http::Exchange exchange, Bytes body) {
    reply_ = nullptr;
    Received received(std::move(exchange));
    if (received.store(body)) {
      outcome_ = std::move(received);
    } else {
      outcome_ = std::unexpected(std::make_error_code(std::errc::not_enough_memory));
    }
    continuation_.resume();
  }
  void on_over() {
    reply_ = nullptr;
    if (continuation_) continuation_.wake();
  }

  http::Exchange& exchange_;
  std::size_t most_;
  Reply* reply_ = nullptr;
  Result<Received> outcome_ = std::unexpected(std::make_error_code(std::errc::broken_pipe));
  Continuation continuation_;
};

// co_await: returns the Exchange and the whole body, of at most `most` bytes; it may be empty. On
// an error the Exchange is destroyed. Errors: EPIPE if the exchange is over because the client or
// the Server is gone, or because the body was too long, in which case 413 was sent; ENOMEM. If the
// wait is cancelled, the client receives 500 once it has sent the body.
inline ReadBody read_body(http::Exchange&& exchange, std::size_t most) {
  return ReadBody(std::move(exchange), most);
}

}  // namespace spate::coro
