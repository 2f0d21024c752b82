// HTTP in coroutines, on both sides: a client whose connections end at a server of the same loop,
// on a clock that stands still.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fault.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/when.h"
#include "spate/http/coro.h"
#include "spate/http/server.h"
#include "tests/coro/http_field.h"
#include "tests/coro/promised.h"

namespace spate::testing {
namespace {

using coro::Received;
using coro::Scope;
using coro::Task;

Task<Result<std::string>> text_from(http::Client* client, std::string url) {
  const http::Response page = co_await coro::or_return(coro::fetch(*client, url));
  co_return std::string(page.text());
}
Task<Result<std::string>> answer_to(http::Client* client, std::string_view body) {
  http::CallOptions options{.method = http::Method::post, .body = bytes_of(body)};
  const http::Response page =
      co_await coro::or_return(coro::fetch(*client, kUrl, std::move(options)));
  co_return std::string(page.text());
}

// The outcome of a request.
struct Fate {
  std::string body;
  std::error_code error;
  bool is_known = false;
};

Task<void> echo_body(http::Exchange asked, Fate* fate) {
  Result<Received> request = co_await coro::read_body(std::move(asked), 10);
  fate->is_known = true;
  if (request) {
    fate->body = text_of(request->body());
    request->exchange.respond("you said " + fate->body);
  } else {
    fate->error = request.error();
  }
}

class CoroHttp : public HttpField {
 protected:
  CoroHttp() {
    on_request_ = [this](http::Exchange exchange) {
      requests_.spawn(echo_body(std::move(exchange), &fate_));
    };
  }

  // Returns a peer that has sent a header section, and three bytes of a body of `size`.
  std::unique_ptr<HttpPeer> one_who_posts(int size) {
    return peer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) +
                "\r\n\r\nabc");
  }

  Fate fate_;
  Scope requests_{loop()};
};

// ---- the client's side

TEST_F(CoroHttp, CoroutineClientAndServerExchangeMessages) {
  EXPECT_EQ(coro::run(loop(), answer_to(&client_, "hello")), "you said hello");
  EXPECT_EQ(coro::run(loop(), text_from(&client_, std::string(kUrl))), "you said ");
  EXPECT_TRUE(requests_.empty());
}

TEST_F(CoroHttp, FailedFetchReportsReason) {
  EXPECT_EQ(coro::run(loop(), text_from(&client_, "nowhere")).error(), std::errc::invalid_argument);
  open_error_ = std::make_error_code(std::errc::connection_refused);
  EXPECT_EQ(coro::run(loop(), text_from(&client_, std::string(kUrl))).error(), open_error_);
}

TEST_F(CoroHttp, CancelledTaskCancelsItsFetch) {
  http::Exchange asked;
  on_request_ = [&](http::Exchange exchange) { asked = std::move(exchange); };
  const auto ask = [](http::Client* client) -> Task<void> {
    co_await coro::fetch(*client, kUrl);
    ADD_FAILURE() << "it went on";
  };
  Scope scope(loop());
  scope.spawn(ask(&client_));
  turns();
  EXPECT_TRUE(asked.is_open());
  EXPECT_EQ(client_.metrics().calls, 1u);
  scope.cancel();
  EXPECT_EQ(client_.metrics().calls, 0u);
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(CoroHttp, ResponseForCancelledFetchIsDropped) {
  const auto ask = [](http::Client* client) -> Task<int> {
    co_await coro::fetch(*client, kUrl);
    ADD_FAILURE() << "it went on";
    co_return 0;
  };
  cancel_when_promised(loop(), ask(&client_), [&] { turns(); });
  EXPECT_TRUE(fate_.is_known);
  EXPECT_EQ(client_.metrics().calls, 0u);
}

// ---- the server's side

TEST_F(CoroHttp, BodyIsReturnedWhenComplete) {
  const auto peer = one_who_posts(6);
  EXPECT_FALSE(fate_.is_known);
  peer->say("def");
  turns();
  EXPECT_EQ(fate_.body, "abcdef");
  EXPECT_TRUE(peer->heard().ends_with("you said abcdef")) << peer->heard();
}

TEST_F(CoroHttp, TooLongBodyIsRefusedAndReported) {
  const auto peer = one_who_posts(11);
  peer->say("defghijk");
  turns();
  EXPECT_TRUE(fate_.is_known);
  EXPECT_EQ(fate_.error, std::errc::broken_pipe);
  EXPECT_TRUE(peer->heard().starts_with("HTTP/1.1 413 ")) << peer->heard();
}

TEST_F(CoroHttp, ClientDisconnectEndsWaitForItsBody) {
  const auto peer = one_who_posts(6);
  peer->go();
  turns();
  EXPECT_TRUE(fate_.is_known);
  EXPECT_EQ(fate_.error, std::errc::broken_pipe);
}

TEST_F(CoroHttp, DestroyedServerEndsWaitForBody) {
  const auto peer = one_who_posts(6);
  server_ = http::Server();
  EXPECT_FALSE(fate_.is_known) << "inside the call";
  turns();
  EXPECT_TRUE(fate_.is_known);
  EXPECT_EQ(fate_.error, std::errc::broken_pipe);
}

TEST_F(CoroHttp, FinishedRequestHasNoBody) {
  requests_.spawn(echo_body(http::Exchange(), &fate_));
  EXPECT_TRUE(fate_.is_known);
  EXPECT_EQ(fate_.error, std::errc::broken_pipe);
}

TEST_F(CoroHttp, ExchangeRespondsAfterBodyOfCancelledReadArrives) {
  const auto peer = one_who_posts(6);
  requests_.cancel();
  peer->say("def");
  turns();
  EXPECT_FALSE(fate_.is_known);
  EXPECT_TRUE(peer->heard().starts_with("HTTP/1.1 500 ")) << peer->heard();
}

TEST_F(CoroHttp, BodyIsKeptUntilReaderResumes) {
  const auto run_inside = [](std::function<void()> meanwhile) -> Task<void> {
    meanwhile();
    co_return;
  };
  const auto both = [](Task<void> one, Task<void> other) -> Task<void> {
    co_await coro::when_all(std::move(one), std::move(other));
  };
  const auto peer = std::make_unique<HttpPeer>(must(connect()));
  bool is_first = true;
  on_request_ = [&](http::Exchange exchange) {
    if (!std::exchange(is_first, false)) return;
    Task<void> runs = run_inside([&] {
      turns();
      EXPECT_FALSE(fate_.is_known);
      const auto another = one_who_posts(3);
    });
    requests_.spawn(both(echo_body(std::move(exchange), &fate_), std::move(runs)));
  };
  peer->say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabcdef");
  turns();
  EXPECT_EQ(fate_.body, "abcdef");
}

// Only HTTP's own allocations fail: the frames of the coroutines are kept from an earlier call.
TEST_F(CoroHttp, FetchAndBodyReadFailWithoutMemory) {
  EXPECT_EQ(coro::run(loop(), answer_to(&client_, "hello")), "you said hello");
  int failures = 0;
  for (std::uint64_t nth = 1; nth <= 60; ++nth) {
    SCOPED_TRACE(nth);
    fate_ = Fate();
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    Result<std::string> text = "";
    {
      const FaultScope faults(plan);
      text = coro::run(loop(), answer_to(&client_, "hello"));
    }
    failures += !text || *text != "you said hello";
    if (!text) EXPECT_NE(text.error(), std::errc::operation_canceled) << "nobody is told";
    requests_.cancel();
    client_.close_idle();
    turns();
    EXPECT_EQ(client_.metrics().calls, 0u);
  }
  EXPECT_GT(failures, 3);
  EXPECT_EQ(coro::run(loop(), answer_to(&client_, "hello")), "you said hello");
}

TEST_F(CoroHttp, CallThatCannotStartWithoutMemoryIsError) {
  EXPECT_FALSE(coro::run(loop(), text_from(&client_, "nowhere")));
  for (std::uint64_t nth = 1; nth <= 12; ++nth) {
    SCOPED_TRACE(nth);
    ScriptedLoop fresh;
    http::Client client = must(http::Client::create(*fresh.loop));
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM, 1000);
    const FaultScope faults(plan);
    const Result<std::string> text = coro::run(*fresh.loop, text_from(&client, "nowhere"));
    EXPECT_FALSE(text);
    if (!text) EXPECT_NE(text.error(), std::errc::operation_canceled) << "nobody is told";
  }
}

TEST_F(CoroHttp, LoopMayBeDestroyedDuringBodyReadOrFetch) {
  const auto ask = [](http::Client* client) -> Task<void> {
    co_await coro::fetch(*client, kUrl);
    ADD_FAILURE() << "it went on";
  };
  const auto peer = one_who_posts(6);
  on_request_ = [](http::Exchange) {};
  requests_.spawn(ask(&client_));
  scripted_.loop.reset();
  EXPECT_FALSE(fate_.is_known);
}

}  // namespace
}  // namespace spate::testing
