// HttpTasks: tasks of a random program over HTTP, calls and WebSockets, each cancelled anywhere.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "spate/coro/or_return.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/http/client.h"
#include "spate/http/coro_call.h"
#include "spate/http/coro_exchange.h"
#include "spate/http/coro_websocket.h"
#include "spate/http/server.h"
#include "tests/coro/crowd.h"
#include "tests/coro/life.h"
#include "tests/coro/text.h"
#include "tests/support/random.h"

namespace spate::testing {

class HttpTasks {
 public:
  template <class Value>
  using Task = coro::Task<Value>;

  // Between two waits, the tasks call `act`, which may cancel any of them.
  HttpTasks(Loop& loop, Crowd& crowd, Random& random, Lives& lives, std::function<void()> act)
      : crowd_(crowd), random_(random), lives_(lives), act_(std::move(act)) {
    http::ClientOptions options;
    options.open = [this, &loop](std::string_view, std::uint16_t) -> Result<Stream> {
      auto [mine, theirs] = must(Stream::memory_pair(loop));
      server_.add(std::move(theirs));
      return std::move(mine);
    };
    client_ = must(http::Client::create(loop, std::move(options)));
    server_ = must(
        http::Server::create(loop, [this](http::Exchange asked) { answer(std::move(asked)); }));
  }
  HttpTasks(const HttpTasks&) = delete;
  HttpTasks& operator=(const HttpTasks&) = delete;

  bool has_lived() const { return answered_ > 0 && chatted_ > 0; }

  // The responder may be cancelled.
  Task<int> asks() {
    Life life(lives_);
    http::CallOptions options{.method = http::Method::post, .upload = http::kUnknownSize};
    options.deadline = std::chrono::seconds(1);
    coro::Call call(client_, "http://a.example/", std::move(options));
    Text text;
    Task<Result<void>> up = uploads(&call, &text);
    Task<Result<void>> down = downloads(&call, &text);
    life.waits();
    const auto both = co_await coro::when_all(std::move(up), std::move(down));
    life.goes_on();
    if (both && text.read == text.sent) ++answered_;
    life.ends();
    co_return 7;
  }
  Task<int> chats_a_while() {
    Life life(lives_);
    coro::WebSocket socket;
    Task<Result<void>> chat = chats_with(&socket);
    life.waits();
    co_await coro::with_deadline(std::chrono::seconds(1), std::move(chat));
    life.goes_on();
    life.ends();
    co_return 7;
  }

 private:
  void answer(http::Exchange asked) {
    if (asked.request().method() == http::Method::get) {
      crowd_.any().spawn(chats(std::move(asked)));
    } else {
      crowd_.any().spawn(echoes(std::move(asked)));
    }
  }
  Task<Result<void>> echoes(http::Exchange asked) {
    Life life(lives_);
    coro::Exchange exchange(std::move(asked));
    bool has_begun = false;
    for (;;) {
      life.waits();
      const Bytes piece = co_await coro::or_return(exchange.read());
      life.goes_on();
      if (!std::exchange(has_begun, true)) exchange.exchange().begin(http::Status::ok);
      if (piece.empty()) break;
      life.waits();
      co_await coro::or_return(exchange.send(piece));
      life.goes_on();
      act_();
    }
    exchange.end();
    life.ends();
    co_return Result<void>();
  }
  Task<Result<void>> uploads(coro::Call* call, Text* text) {
    Life life(lives_);
    for (std::size_t count = 1 + random_.below(5); count > 0; --count) {
      const std::string_view part = text->next(1 + random_.below(20'000));
      text->sent += part.size();
      life.waits();
      co_await coro::or_return(call->send(part));
      life.goes_on();
      act_();
    }
    call->end();
    life.ends();
    co_return Result<void>();
  }
  Task<Result<void>> downloads(coro::Call* call, Text* text) {
    Life life(lives_);
    life.waits();
    const http::Response* head = co_await coro::or_return(call->response());
    life.goes_on();
    if (head->is_success()) {
      for (;;) {
        life.waits();
        const Bytes piece = co_await coro::or_return(call->read());
        life.goes_on();
        if (piece.empty()) break;
        text->check(piece);
        act_();
      }
    }
    life.ends();
    co_return Result<void>();
  }
  Task<void> chats(http::Exchange asked) {
    Life life(lives_);
    coro::WebSocket socket;
    const std::error_code refused = socket.accept(std::move(asked));
    while (!refused) {
      life.waits();
      const Result<coro::Message> message = co_await socket.receive();
      life.goes_on();
      if (!message) break;
      act_();
      life.waits();
      const Result<void> sent = co_await socket.send("and " + std::string(text_of(message->bytes)));
      life.goes_on();
      if (!sent) break;
    }
    life.ends();
  }
  Task<Result<void>> chats_with(coro::WebSocket* socket) {
    Life life(lives_);
    life.waits();
    co_await coro::or_return(socket->connect(client_, "ws://a.example/"));
    life.goes_on();
    for (int i = 0; i < 3; ++i) {
      const std::string said = std::to_string(i);
      life.waits();
      co_await coro::or_return(socket->send(said));
      const coro::Message answer = co_await coro::or_return(socket->receive());
      life.goes_on();
      EXPECT_EQ(text_of(answer.bytes), "and " + said);
      act_();
    }
    life.waits();
    co_await coro::or_return(socket->close());
    life.goes_on();
    ++chatted_;
    life.ends();
    co_return Result<void>();
  }

  Crowd& crowd_;
  Random& random_;
  Lives& lives_;
  std::function<void()> act_;
  http::Server server_;
  http::Client client_;
  int answered_ = 0;
  int chatted_ = 0;
};

}  // namespace spate::testing
