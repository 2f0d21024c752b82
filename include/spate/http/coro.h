// fetch(), read_body(): those of HTTP (client.h, exchange.h), to be awaited. Needs spate::http; the
// namespace is that of the other awaitables (coro/).
//
//   coro::Task<Result<std::string>> title(http::Client* client) {
//     const http::Response page = co_await coro::or_return(coro::fetch(*client, kUrl));
//     co_return title_of(page.text());
//   }
//
//   coro::Task<void> answer(http::Exchange asked) {
//     Result<coro::Received> request = co_await coro::read_body(std::move(asked), 64 << 10);
//     if (request) request->exchange.respond(reply_to(text_of(request->body())));
//   }
//   ...
//   router.post("/", [&](http::Exchange exchange) { scope.spawn(answer(std::move(exchange))); });
//
// Threads: the loop's thread only.
#pragma once

#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/assert.h"
#include "spate/coro/answer.h"
#include "spate/error.h"
#include "spate/http/call.h"
#include "spate/http/client.h"
#include "spate/http/exchange.h"
#include "spate/http/response.h"
#include "spate/loop.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::coro {

// ---- the client's

inline Result<http::Call> begin_fetch([[maybe_unused]] Loop& loop, http::Client& client,
                                      std::string_view url, http::OnResponse on_response,
                                      http::CallOptions&& options) {
  SPATE_ASSERT(&client.loop() == &loop, "the Client is of another loop");
  http::Call call = client.fetch(url, std::move(on_response), std::move(options));
  if (call.is_open()) return call;
  return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
}

// co_await: the whole answer, of any status. Errors: those of http::Client::fetch(); ENOMEM. A call
// that is given up is cancelled. The Client is one of the task's loop, and has to last as long as
// somebody waits: it tells nobody when it goes.
inline auto fetch(http::Client& client, std::string_view url) {
  return Answer<Result<http::Response>>::of(
      [&client, url](Loop& loop, auto reply) { return begin_fetch(loop, client, url, reply, {}); });
}
// With options, which are taken: std::move() those that have a name (coroutine-compilers.md).
inline auto fetch(http::Client& client, std::string_view url, http::CallOptions&& options) {
  return Answer<Result<http::Response>>::of([&client, url, &options](Loop& loop, auto reply) {
    return begin_fetch(loop, client, url, reply, std::move(options));
  });
}

// ---- the server's

// A request, to be answered, and its body.
class Received {
 public:
  http::Exchange exchange;

  // Valid as long as this is, or what it was moved to.
  Bytes body() const { return flat_; }

 private:
  friend class ReadBody;
  explicit Received(http::Exchange asked) : exchange(std::move(asked)) {}
  bool keep(Bytes body) {
    if (!buffer_.append(body)) return false;
    flat_ = buffer_.flat(body.size());
    return flat_.size() == body.size();
  }

  Buffer buffer_;
  Bytes flat_;
};

// What read_body() gives to co_await.
class ReadBody : public Operation<ReadBody> {
 public:
  ReadBody(http::Exchange&& exchange, std::size_t most) : exchange_(exchange), most_(most) {}
  ~ReadBody() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise&, Then then) {
    http::read_body(std::move(exchange_), most_, Reply(*this));
    if (reply_ == nullptr) return false;
    then_ = then;
    return true;
  }
  void cancel() {
    then_.leave();
    if (reply_ != nullptr) std::exchange(reply_, nullptr)->forget();
  }
  Result<Received> await_resume() { return std::move(outcome_); }

 private:
  // The callback. The server destroys it, uncalled, when the request is over.
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
    // Of a wait that was given up, the Exchange ends here, which answers.
    void operator()(http::Exchange exchange, Bytes body) {
      if (wait_ != nullptr) std::exchange(wait_, nullptr)->on_body(std::move(exchange), body);
    }

   private:
    ReadBody* wait_;
  };

  void on_body(http::Exchange exchange, Bytes body) {
    reply_ = nullptr;
    Received received(std::move(exchange));
    if (received.keep(body)) {
      outcome_ = std::move(received);
    } else {
      outcome_ = std::unexpected(std::make_error_code(std::errc::not_enough_memory));
    }
    then_.go();
  }
  void on_over() {
    reply_ = nullptr;
    if (then_) then_.wake();
  }

  http::Exchange& exchange_;
  std::size_t most_;
  Reply* reply_ = nullptr;
  Result<Received> outcome_ = std::unexpected(std::make_error_code(std::errc::broken_pipe));
  Then then_;
};

// co_await: the Exchange and the whole body, of at most `most` bytes; it may be empty. Errors, with
// which the Exchange is gone: EPIPE if the request is over, as the client or the Server has gone,
// or the body is too long, which was answered 413; ENOMEM. If the wait is given up, the client is
// answered 500 when it has sent the body.
inline ReadBody read_body(http::Exchange&& exchange, std::size_t most) {
  return ReadBody(std::move(exchange), most);
}

}  // namespace spate::coro
