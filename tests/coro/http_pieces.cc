// HTTP in pieces by coroutines: requests and responses of any length, read and written with
// back-pressure, on both sides, against one another and against raw bytes.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fault.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/http/coro_call.h"
#include "spate/http/coro_exchange.h"
#include "tests/coro/http_field.h"
#include "tests/coro/kept.h"
#include "tests/coro/promised.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

// The request that a server has read, and the error that ended it.
struct Story {
  std::string body;
  std::string trailer;
  std::error_code error;
  bool is_over = false;
};

// The response begins after the first piece: before that, the client may wait for 100 Continue.
Task<Result<void>> echo_all(coro::Exchange* exchange, Story* story) {
  bool has_begun = false;
  for (;;) {
    const Bytes piece = co_await coro::or_return(exchange->read());
    if (!std::exchange(has_begun, true)) exchange->exchange().begin(http::Status::ok);
    if (piece.empty()) break;
    story->body += text_of(piece);
    co_await coro::or_return(exchange->send(piece));
  }
  http::Fields behind;
  story->trailer = exchange->trailers()["X-Said"];
  const bool is_whole = behind.add("X-Sum", std::to_string(story->body.size()));
  if (!is_whole || !exchange->end(behind)) co_return std::unexpected(Error::ended);
  co_return Result<void>();
}
Task<void> echo_pieces(http::Exchange asked, Story* story) {
  coro::Exchange exchange(std::move(asked));
  const Result<void> done = co_await echo_all(&exchange, story);
  if (!done) story->error = done.error();
  story->is_over = true;
}

class CoroPieces : public HttpField {
 protected:
  CoroPieces() {
    on_request_ = [this](http::Exchange asked) {
      requests_.spawn(echo_pieces(std::move(asked), &story_));
    };
  }

  Story story_;
  Scope requests_{loop()};
};

// ---- both sides

Task<Result<std::string>> read_rest(coro::Call* call) {
  std::string text;
  for (;;) {
    const Bytes piece = co_await coro::or_return(call->read());
    if (piece.empty()) co_return text;
    text += text_of(piece);
  }
}
Task<Result<void>> write_all(coro::Call* call, int pieces) {
  const std::string piece(10'000, 'x');
  for (int i = 0; i < pieces; ++i) co_await coro::or_return(call->send(piece));
  http::Fields behind;
  behind.add("X-Said", "all");
  if (!call->end(std::move(behind))) co_return std::unexpected(Error::ended);
  co_return Result<void>();
}
Task<Result<std::string>> read_all(coro::Call* call) {
  const http::Response* head = co_await coro::or_return(call->response());
  EXPECT_EQ(head->status(), http::Status::ok);
  co_return co_await read_rest(call);
}
Task<Result<std::size_t>> upload(http::Client* client, int pieces) {
  http::CallOptions options{.method = http::Method::post, .upload = http::kUnknownSize};
  coro::Call call(*client, kUrl, std::move(options));
  const auto both =
      co_await coro::or_return(coro::when_all(write_all(&call, pieces), read_all(&call)));
  const std::string& text = std::get<1>(both);
  EXPECT_EQ(call.trailers()["X-Sum"], std::to_string(text.size()));
  co_return text.size();
}

TEST_F(CoroPieces, UploadIsEchoedWithTrailersInBothDirections) {
  EXPECT_EQ(coro::run(loop(), upload(&client_, 300)), 3'000'000u);
  EXPECT_TRUE(story_.is_over);
  EXPECT_FALSE(story_.error) << story_.error.message();
  EXPECT_EQ(story_.trailer, "all");
  EXPECT_EQ(client_.metrics().calls, 0u);
}

Task<Result<std::string>> get(http::Client* client) {
  coro::Call call(*client, kUrl);
  co_return co_await read_all(&call);
}

TEST_F(CoroPieces, RequestWithoutBodyHasNoData) {
  EXPECT_EQ(coro::run(loop(), get(&client_)), "");
  EXPECT_TRUE(story_.is_over);
  EXPECT_EQ(story_.body, "");
  EXPECT_FALSE(story_.error);
}

// ---- the server's side

TEST_F(CoroPieces, BodyIsReadOnArrival) {
  const auto client = peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  EXPECT_EQ(story_.body, "abc");
  EXPECT_FALSE(story_.is_over);
  client->say("def");
  turns();
  EXPECT_EQ(story_.body, "abcdef");
  EXPECT_TRUE(story_.is_over);
  EXPECT_TRUE(client->heard().ends_with("3\r\ndef\r\n0\r\nX-Sum: 6\r\n\r\n")) << client->heard();
}

TEST_F(CoroPieces, FirstReadSendsContinue) {
  coro::Event may_read;
  const auto wait_first = [](http::Exchange asked, coro::Event* event, Story* story) -> Task<void> {
    coro::Exchange exchange(std::move(asked));
    co_await event->wait();
    co_await echo_all(&exchange, story);
  };
  on_request_ = [&](http::Exchange asked) {
    requests_.spawn(wait_first(std::move(asked), &may_read, &story_));
  };
  const auto client =
      peer("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client->heard(), "");
  may_read.set();
  turns();
  EXPECT_TRUE(client->heard().starts_with("HTTP/1.1 100 ")) << client->heard();
  client->say("abc");
  turns();
  EXPECT_EQ(story_.body, "abc");
}

TEST_F(CoroPieces, NothingIsReadWhileReaderIsBusy) {
  const auto slowly = [](http::Exchange asked, Story* story) -> Task<void> {
    coro::Exchange exchange(std::move(asked));
    for (;;) {
      {
        const Result<Bytes> piece = co_await exchange.read();
        if (!piece || piece->empty()) break;
        story->body += text_of(*piece);
      }
      co_await coro::next_turn();
    }
    story->trailer = exchange.trailers()["X-Said"];
    exchange.exchange().respond("thanks");
    story->is_over = true;
  };
  on_request_ = [&](http::Exchange asked) { requests_.spawn(slowly(std::move(asked), &story_)); };
  const auto client = peer(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\nX-Said: enough\r\n\r\n");
  turns();
  EXPECT_EQ(story_.body, "abcdef");
  EXPECT_EQ(story_.trailer, "enough");
  EXPECT_TRUE(client->heard().ends_with("thanks")) << client->heard();
}

TEST_F(CoroPieces, CancelledReadConsumesNothing) {
  std::optional<coro::Exchange> exchange;
  on_request_ = [&](http::Exchange asked) { exchange.emplace(std::move(asked)); };
  const auto client = peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n");
  const auto read_on = [](coro::Exchange* from, Story* story) -> Task<Result<void>> {
    for (;;) {
      const Bytes piece = co_await coro::or_return(from->read());
      if (piece.empty()) co_return Result<void>();
      story->body += text_of(piece);
    }
  };
  for (int i = 0; i < 20; ++i) {
    Scope scope(loop());
    scope.spawn(read_on(&*exchange, &story_));
    turns(i % 3);
    client->say(std::string(1, static_cast<char>('a' + i)));
    turns(i % 4);
  }
  EXPECT_TRUE(coro::run(loop(), read_on(&*exchange, &story_)));
  EXPECT_EQ(story_.body, "abcdefghijklmnopqrst");
  exchange.reset();
}

TEST_F(CoroPieces, DataReservedForCancelledReaderIsKept) {
  std::optional<coro::Exchange> exchange;
  on_request_ = [&](http::Exchange asked) { exchange.emplace(std::move(asked)); };
  const auto client = peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
  const auto read_one = [](coro::Exchange* from, Story* story) -> Task<Result<void>> {
    const Bytes piece = co_await coro::or_return(from->read());
    story->body += text_of(piece);
    co_return Result<void>();
  };
  cancel_when_promised(loop(), read_one(&*exchange, &story_), [&] { client->say("abcdef"); });
  EXPECT_EQ(story_.body, "");
  EXPECT_TRUE(coro::run(loop(), read_one(&*exchange, &story_)));
  EXPECT_EQ(story_.body, "abcdef");
  EXPECT_TRUE(coro::run(loop(), read_one(&*exchange, &story_)));
  EXPECT_EQ(story_.body, "abcdef") << "its end";
  exchange.reset();
}

TEST_F(CoroPieces, ClientDisconnectEndsRead) {
  const auto client = peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  client->go();
  turns();
  EXPECT_TRUE(story_.is_over);
  EXPECT_EQ(story_.error, std::errc::connection_reset);
}

TEST_F(CoroPieces, ReadCanBeCancelledAfterServerIsDestroyed) {
  const auto client = peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  server_ = http::Server();
  turns();
  EXPECT_EQ(requests_.size(), 1u);
  requests_.cancel();
  EXPECT_FALSE(story_.is_over);
}

TEST_F(CoroPieces, FinishedRequestReturnsErrors) {
  const auto say = [](Story* story) -> Task<void> {
    coro::Exchange exchange{http::Exchange()};
    const Result<Bytes> piece = co_await exchange.read();
    story->error = piece.error();
    const Result<void> sent = co_await exchange.send("x");
    EXPECT_EQ(sent.error(), std::errc::broken_pipe);
    EXPECT_FALSE(exchange.end());
  };
  coro::run(loop(), say(&story_));
  EXPECT_EQ(story_.error, std::errc::broken_pipe);
}

// Responds without an end, until it fails.
Task<void> flood(http::Exchange asked, Story* story, int* sent) {
  coro::Exchange exchange(std::move(asked));
  exchange.exchange().begin(http::Status::ok);
  const std::string much(50'000, 'x');
  for (;;) {
    const Result<void> written = co_await exchange.send(much);
    if (!written) {
      story->error = written.error();
      story->is_over = true;
      co_return;
    }
    ++*sent;
  }
}

TEST_F(CoroPieces, WriterWaitsForClientAndDetectsItsDisconnect) {
  int sent = 0;
  on_request_ = [&](http::Exchange asked) {
    requests_.spawn(flood(std::move(asked), &story_, &sent));
  };
  const auto client = std::make_unique<HttpPeer>(must(connect()));
  client->stream().pause();
  client->say("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  turns();
  const int before = sent;
  EXPECT_LT(before, 100);
  turns();
  EXPECT_EQ(sent, before);
  client->stream().resume();
  turns(2);
  EXPECT_GT(sent, before);
  client->go();
  turns();
  EXPECT_TRUE(story_.is_over);
  EXPECT_TRUE(story_.error == std::errc::connection_reset || story_.error == std::errc::broken_pipe)
      << story_.error.message();
}

TEST_F(CoroPieces, WriterWaitsForClientWithUnreadBody) {
  int sent = 0;
  on_request_ = [&](http::Exchange asked) {
    requests_.spawn(flood(std::move(asked), &story_, &sent));
  };
  const auto client = std::make_unique<HttpPeer>(must(connect()));
  client->stream().pause();
  client->say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  turns();
  const int before = sent;
  EXPECT_LT(before, 100);
  client->stream().resume();
  turns(2);
  EXPECT_GT(sent, before);
  requests_.cancel();
  turns();
}

TEST_F(CoroPieces, CancelledResponseIsNotTreatedAsComplete) {
  int sent = 0;
  on_request_ = [&](http::Exchange asked) {
    requests_.spawn(flood(std::move(asked), &story_, &sent));
  };
  std::error_code error;
  Scope scope(loop());
  scope.on_error([&](std::error_code why) { error = why; });
  const auto ask = [](http::Client* client) -> Task<Result<void>> {
    coro::Call call(*client, kUrl);
    co_await coro::or_return(read_all(&call));
    co_return Result<void>();
  };
  scope.spawn(ask(&client_));
  turns(5);
  EXPECT_EQ(scope.size(), 1u);
  requests_.cancel();
  turns();
  EXPECT_TRUE(error);
  EXPECT_TRUE(scope.empty());
}

// ---- the client's side

TEST_F(CoroPieces, ResponseBodyIsNotReadWithoutReader) {
  int sent = 0;
  on_request_ = [&](http::Exchange asked) {
    requests_.spawn(flood(std::move(asked), &story_, &sent));
  };
  const auto head_of = [](coro::Call* call) -> Task<Result<http::Status>> {
    const http::Response* head = co_await coro::or_return(call->response());
    co_return head->status();
  };
  const auto read_one = [](coro::Call* call) -> Task<Result<void>> {
    const Bytes piece = co_await coro::or_return(call->read());
    EXPECT_FALSE(piece.empty());
    co_return Result<void>();
  };
  coro::Call call(client_, kUrl);
  EXPECT_EQ(coro::run(loop(), head_of(&call)), http::Status::ok);
  turns();
  const int before = sent;
  turns();
  EXPECT_EQ(sent, before);
  EXPECT_LT(before, 200);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(coro::run(loop(), read_one(&call)));
  EXPECT_GT(sent, before);
  EXPECT_EQ(coro::run(loop(), head_of(&call)), http::Status::ok);
}

TEST_F(CoroPieces, FailedCallReportsReason) {
  const auto get_from = [](http::Client* client, std::string_view url) -> Task<Result<void>> {
    coro::Call call(*client, url);
    const auto head = co_await call.response();
    EXPECT_FALSE(head);
    const Result<Bytes> piece = co_await call.read();
    EXPECT_EQ(piece.error(), head.error());
    const Result<void> sent = co_await call.send("x");
    EXPECT_EQ(sent.error(), head.error());
    co_return std::unexpected(head.error());
  };
  EXPECT_EQ(coro::run(loop(), get_from(&client_, "nowhere")).error(), std::errc::invalid_argument);
  open_error_ = std::make_error_code(std::errc::connection_refused);
  EXPECT_EQ(coro::run(loop(), get_from(&client_, kUrl)).error(), open_error_);
}

TEST_F(CoroPieces, CallHasDeadline) {
  http::Exchange silent;
  on_request_ = [&](http::Exchange asked) { silent = std::move(asked); };
  EXPECT_EQ(coro::run(loop(), get(&client_)).error(), Error::deadline);
}

TEST_F(CoroPieces, CancelledTaskCancelsItsCall) {
  http::Exchange silent;
  on_request_ = [&](http::Exchange asked) { silent = std::move(asked); };
  const auto ask = [](http::Client* client) -> Task<void> {
    co_await get(client);
    ADD_FAILURE() << "it went on";
  };
  Scope scope(loop());
  scope.spawn(ask(&client_));
  turns();
  EXPECT_EQ(client_.metrics().calls, 1u);
  scope.cancel();
  EXPECT_EQ(client_.metrics().calls, 0u);
  turns();
  EXPECT_FALSE(silent.is_open());
}

TEST_F(CoroPieces, TruncatedResponseIsError) {
  on_request_ = [](http::Exchange asked) {
    asked.begin(http::Status::ok, {}, 10);
    asked.write("abc");
    asked.abort();
  };
  EXPECT_TRUE(coro::run(loop(), get(&client_)).error());
}

TEST_F(CoroPieces, ResponseBodyMayBeReadBeforeItsHeaderSection) {
  on_request_ = [](http::Exchange asked) { asked.respond("hello"); };
  const auto read_first = [](http::Client* client) -> Task<Result<std::string>> {
    coro::Call call(*client, kUrl);
    std::string text = co_await coro::or_return(read_rest(&call));
    const http::Response* head = co_await coro::or_return(call.response());
    text += " " + std::to_string(head->fields().size() > 0);
    co_return text;
  };
  EXPECT_EQ(coro::run(loop(), read_first(&client_)), "hello 1");
}

TEST_F(CoroPieces, ReaderMayDestroyCall) {
  on_request_ = [](http::Exchange asked) { asked.respond("hello"); };
  const auto read_one = [](http::Client* client) -> Task<Result<std::string>> {
    coro::Call call(*client, kUrl);
    const Bytes piece = co_await coro::or_return(call.read());
    co_return std::string(text_of(piece));
  };
  EXPECT_EQ(coro::run(loop(), read_one(&client_)), "hello");
  EXPECT_EQ(client_.metrics().calls, 0u);
}

// The first call leaves its frames for reuse, so only HTTP's own allocations fail.
TEST_F(CoroPieces, ReadsAndWritesFailWithoutMemory) {
  begin_with_nothing_kept();
  ASSERT_EQ(coro::run(loop(), upload(&client_, 3)), 30'000u);
  int failures = 0;
  for (std::uint64_t nth = 1; nth <= 60; ++nth) {
    SCOPED_TRACE(nth);
    story_ = Story();
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    Result<std::size_t> size;
    {
      const FaultScope faults(plan);
      size = coro::run(loop(), upload(&client_, 3));
    }
    if (size) {
      EXPECT_EQ(*size, 30'000u);
    } else {
      ++failures;
      EXPECT_NE(size.error(), std::errc::operation_canceled) << "nobody is told";
    }
    requests_.cancel();
    client_.close_idle();
    turns();
    EXPECT_EQ(client_.metrics().calls, 0u);
  }
  EXPECT_GT(failures, 3);
  story_ = Story();
  EXPECT_EQ(coro::run(loop(), upload(&client_, 3)), 30'000u);
}

TEST_F(CoroPieces, LoopMayBeDestroyedDuringRead) {
  const auto ask = [](http::Client* client) -> Task<void> {
    co_await get(client);
    ADD_FAILURE() << "it went on";
  };
  const auto client = peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  on_request_ = [](http::Exchange) {};
  requests_.spawn(ask(&client_));
  scripted_.loop.reset();
  EXPECT_FALSE(story_.is_over);
}

}  // namespace
}  // namespace spate::testing
