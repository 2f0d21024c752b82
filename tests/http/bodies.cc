// Bodies of requests: whole and in pieces, read and unread.
#include "http/harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::ExchangeHandler;
using http::FieldsView;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BodyRecorder final : public ExchangeHandler {
 public:
  void on_body(Bytes bytes) override {
    received.append(text_of(bytes));
    ++pieces;
    if (when_body) when_body();
  }
  void on_body_end(const FieldsView& trailers) override {
    log += "end ";
    sum = std::string(trailers["X-Sum"]);
    if (when_ended) when_ended();
  }
  void on_client_end() override { log += "client "; }
  void on_drained() override { log += "drained "; }
  void on_closed(std::error_code why) override {
    log += "closed ";
    error = why;
    if (when_closed) when_closed();
  }

  Exchange exchange;
  std::string received;
  std::string log;
  std::string sum;
  std::error_code error;
  int pieces = 0;
  std::function<void()> when_body;
  std::function<void()> when_ended;
  std::function<void()> when_closed;
};

class Bodies : public HttpServerTest {
 protected:
  Bodies() {
    on_request = [this](Exchange exchange) {
      recorder_.exchange = std::move(exchange);
      recorder_.exchange.start(recorder_);
    };
  }

  BodyRecorder recorder_;
};

constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
constexpr std::string_view kChunked =
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_F(Bodies, BodyIsDeliveredInPiecesOnArrival) {
  const auto client = connect();
  client->send(kPost);
  turns();
  client->send("01234");
  turns();
  EXPECT_EQ(recorder_.received, "01234");
  EXPECT_EQ(recorder_.log, "");
  client->send("56789");
  turns();
  EXPECT_EQ(recorder_.received, "0123456789");
  EXPECT_EQ(recorder_.log, "end ");
  EXPECT_TRUE(recorder_.exchange.respond("done\n"));
  turns();
  EXPECT_EQ(recorder_.log, "end closed ");
  EXPECT_FALSE(recorder_.error);
  EXPECT_THAT(client->received, EndsWith("done\n"));
}

TEST_F(Bodies, ChunkedBodyIsDecodedWithItsTrailers) {
  for (const std::size_t step : {1u, 7u, 1000u}) {
    recorder_.received.clear();
    const auto client = connect();
    const std::string text =
        std::string(kChunked) + "3\r\none\r\n4;a=b\r\nfour\r\n0\r\nX-Sum: 7\r\n\r\n";
    for (std::size_t at = 0; at < text.size(); at += step) {
      client->send(std::string_view(text).substr(at, step));
      turns(3);
    }
    EXPECT_EQ(recorder_.received, "onefour");
    EXPECT_EQ(recorder_.sum, "7");
    recorder_.exchange.respond("done\n");
    turns();
    EXPECT_THAT(client->received, EndsWith("done\n"));
  }
}

TEST_F(Bodies, BodyIsFollowedByNextRequest) {
  recorder_.when_ended = [&] { recorder_.exchange.respond("done\n"); };
  const auto client = connect();
  client->send(std::string(kPost) + "0123456789" + std::string(kChunked) + "1\r\na\r\n0\r\n\r\n" +
               std::string(kPost) + "9876543210");
  turns();
  EXPECT_EQ(recorder_.received, "0123456789a9876543210");
  EXPECT_EQ(recorder_.log, "end closed end closed end closed ");
  EXPECT_EQ(server_.metrics().requests, 3u);
}

TEST_F(Bodies, WholeBodyIsReadOnDemand) {
  std::string whole;
  on_request = [&](Exchange exchange) {
    http::read_body(std::move(exchange), 10, [&](Exchange again, Bytes body) {
      whole = text_of(body);
      again.respond("read\n");
    });
  };
  EXPECT_THAT(talk(std::string(kPost) + "0123456789"), EndsWith("read\n"));
  EXPECT_EQ(whole, "0123456789");
  EXPECT_THAT(talk(std::string(kChunked) + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), EndsWith("read\n"));
  EXPECT_EQ(whole, "abcde");
  EXPECT_THAT(talk(kGet), EndsWith("read\n"));
  EXPECT_EQ(whole, "");
}

TEST_F(Bodies, TooLongBodyIsRefusedByReadBody) {
  int calls = 0;
  on_request = [&](Exchange exchange) {
    http::read_body(std::move(exchange), 9, [&](Exchange, Bytes) { ++calls; });
  };
  const auto client = connect();
  client->send(std::string(kPost) + "0123456789");
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
  EXPECT_THAT(talk(std::string(kChunked) + "a\r\n0123456789\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(calls, 0);
}

TEST_F(Bodies, ReadBodyDoesNotReportTruncatedBody) {
  int calls = 0;
  on_request = [&](Exchange exchange) {
    http::read_body(std::move(exchange), 100, [&](Exchange, Bytes) { ++calls; });
  };
  const auto client = connect();
  client->send(std::string(kPost) + "01234");
  turns();
  EXPECT_EQ(server_.metrics().exchanges, 1u);
  client->stream().end();
  turns();
  EXPECT_EQ(server_.metrics().exchanges, 0u);
  EXPECT_EQ(calls, 0);
}

TEST_F(Bodies, BodyBeyondServerLimitIsRefused) {
  serve_with({.max_body = 9});
  EXPECT_THAT(talk(kPost), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(server_.metrics().requests, 0u);
  const auto client = connect();
  client->send(std::string(kChunked) + "5\r\n01234\r\n5\r\n01234\r\n");
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(recorder_.log, "closed ");
  EXPECT_EQ(recorder_.error, std::errc::message_size);
  EXPECT_FALSE(recorder_.exchange.is_open());
}

TEST_F(Bodies, MalformedBodyIsRefused) {
  const auto client = connect();
  client->send(std::string(kChunked) + "5\r\n01234\r\nx\r\n");
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(client->is_ended);
  EXPECT_EQ(recorder_.received, "01234");
  EXPECT_EQ(recorder_.error, std::errc::bad_message);
}

TEST_F(Bodies, UnreadBodyIsDiscardedAfterResponse) {
  on_request = [](Exchange exchange) { exchange.respond("done\n"); };
  const auto client = connect();
  client->send(std::string(kPost) + "01234");
  turns();
  EXPECT_THAT(client->received, EndsWith("done\n"));
  client->send("56789" + std::string(kGet));
  turns();
  EXPECT_EQ(server_.metrics().requests, 2u);
  EXPECT_FALSE(client->is_ended);
}

TEST_F(Bodies, LongUnreadBodyClosesConnection) {
  on_request = [](Exchange exchange) { exchange.respond("done\n"); };
  auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 262145\r\n\r\n");
  turns();
  EXPECT_THAT(client->received, EndsWith("done\n"));
  EXPECT_TRUE(client->is_ended);
  client = connect();
  client->send(std::string(kChunked) + "80000\r\n" + std::string(0x80000, 'a') + "\r\n");
  turns(200);
  EXPECT_TRUE(client->is_ended);
}

TEST_F(Bodies, BodyReadSendsContinueOnExpect) {
  const std::string post =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n";
  auto client = connect();
  client->send(post);
  turns();
  EXPECT_EQ(client->received, "HTTP/1.1 100 Continue\r\n\r\n");
  client->send("0123456789");
  turns();
  recorder_.exchange.respond("done\n");
  turns();
  EXPECT_THAT(client->received, EndsWith("done\n"));
  EXPECT_FALSE(client->is_ended);

  on_request = [](Exchange exchange) { exchange.respond(Status::forbidden); };
  client = connect();
  client->send(post);
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 403 "));
  EXPECT_TRUE(client->is_ended);
}

TEST_F(Bodies, BodyIsNotReadWhilePaused) {
  recorder_.when_body = [&] { recorder_.exchange.pause(); };
  const auto client = connect();
  client->send(std::string(kPost) + "01234");
  turns();
  client->send("56789");
  turns();
  EXPECT_EQ(recorder_.received, "01234");
  recorder_.exchange.resume();
  turns();
  EXPECT_EQ(recorder_.received, "0123456789");
  EXPECT_EQ(recorder_.log, "");  // Paused again.
  recorder_.exchange.resume();
  EXPECT_EQ(recorder_.log, "");  // Never from inside a call.
  turns();
  EXPECT_EQ(recorder_.log, "end ");
}

TEST_F(Bodies, EndOfBodyIsDeferredUntilResume) {
  for (const std::string body :
       {"Content-Length: 2\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"}) {
    SCOPED_TRACE(body);
    recorder_.log.clear();
    recorder_.when_body = [&] { recorder_.exchange.pause(); };
    const auto client = connect();
    client->send("POST / HTTP/1.1\r\nHost: a\r\n" + body);
    client->stream().end();  // Which is not seen either.
    turns();
    EXPECT_EQ(recorder_.log, "");
    recorder_.exchange.resume();
    turns();
    EXPECT_EQ(recorder_.log, "end client ");
    recorder_.exchange.respond("late\n");
    turns();
    EXPECT_THAT(client->received, EndsWith("late\n"));
  }
}

// The connection serves the next request.
TEST_F(Bodies, BodyEndsWhenItsPausedReaderIsDestroyed) {
  recorder_.when_body = [&] { recorder_.exchange.pause(); };
  const auto client = connect();
  client->send(std::string(kPost) + "0123456789");
  turns();
  recorder_.exchange.respond("first\n");
  turns();
  EXPECT_EQ(server_.metrics().exchanges, 1u);
  recorder_.exchange = {};
  on_request = [](Exchange exchange) { exchange.respond("second\n"); };
  client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  turns();
  EXPECT_THAT(client->received, EndsWith("second\n"));
  EXPECT_EQ(server_.metrics().exchanges, 0u);
}

TEST_F(Bodies, BodyIsNotReadBeforeStart) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(std::string(kPost) + "0123456789");
  turns();
  EXPECT_TRUE(kept.is_open());
  kept.start(recorder_);
  turns();
  EXPECT_EQ(recorder_.received, "0123456789");
}

TEST_F(Bodies, BodyMayContinueAfterResponse) {
  const auto client = connect();
  client->send(kPost);
  turns();
  recorder_.exchange.respond("early\n");
  turns();
  EXPECT_THAT(client->received, EndsWith("early\n"));
  client->send("0123456789");
  turns();
  EXPECT_EQ(recorder_.received, "0123456789");
  EXPECT_EQ(recorder_.log, "end closed ");
}

TEST_F(Bodies, BodyIsLostWhenClientDisconnects) {
  const auto client = connect();
  client->send(std::string(kPost) + "0123");
  turns();
  client->stream().abort();
  turns();
  EXPECT_EQ(recorder_.log, "closed ");
  EXPECT_EQ(recorder_.error, std::errc::connection_reset);
}

TEST_F(Bodies, HandlerMayDropBody) {
  auto recorder = std::make_unique<BodyRecorder>();
  on_request = [&](Exchange exchange) {
    recorder->exchange = std::move(exchange);
    recorder->exchange.start(*recorder);
    recorder->when_body = [&] { recorder.reset(); };
  };
  const auto client = connect();
  client->send(std::string(kPost) + "01234");
  turns();
  EXPECT_EQ(recorder, nullptr);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 500 "));
}

TEST_F(Bodies, BodyCallbacksMayDestroyServer) {
  recorder_.when_body = [&] { server_ = {}; };
  auto client = connect();
  client->send(std::string(kPost) + "0123456789");
  turns();
  EXPECT_FALSE(recorder_.exchange.is_open());

  recorder_.when_body = {};
  recorder_.when_ended = [&] { server_ = {}; };
  serve_with();
  client = connect();
  client->send(std::string(kPost) + "0123456789");
  turns();
  EXPECT_FALSE(recorder_.exchange.is_open());

  recorder_.when_ended = [&] { recorder_.exchange.respond("x"); };
  recorder_.when_closed = [&] { server_ = {}; };
  serve_with();
  client = connect();
  client->send(std::string(kPost) + "0123456789");
  turns();
  EXPECT_THAT(client->received, EndsWith("x"));
}

TEST_F(Bodies, HalfClosedClientIsReported) {
  const auto client = connect();
  client->send(kGet);
  turns();
  client->stream().end();
  turns();
  EXPECT_EQ(recorder_.log, "client ");
  recorder_.exchange.respond("still\n");
  turns();
  EXPECT_EQ(recorder_.log, "client closed ");
  EXPECT_THAT(client->received, EndsWith("still\n"));
}

}  // namespace
}  // namespace spate::testing
