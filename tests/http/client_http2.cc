// A client that speaks HTTP/2, with our server: a call's callbacks are those of HTTP/1.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "http/client_http2_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::Method;
using http::Status;
using ::testing::ElementsAre;

class ClientHttp2 : public Http2PairTest {
 protected:
  // Responds with the request.
  void echo() {
    on_request = [](Exchange exchange) {
      read_body(std::move(exchange), 1 << 24,
                [](Exchange whole, Bytes body) { whole.respond(Status::ok, {}, body); });
    };
  }
  // Keeps the exchanges.
  void keep() {
    on_request = [this](Exchange exchange) {
      kept_.push_back(std::make_unique<Kept>(std::move(exchange)));
    };
  }
};

TEST_F(ClientHttp2, RequestReceivesResponse) {
  std::string seen;
  on_request = [&](Exchange exchange) {
    const auto& request = exchange.request();
    seen = std::string(request.method_name()) + " " + std::string(request.target()) + " " +
           std::string(request.fields()["Host"]) + " " + std::string(request.fields()["X-Mark"]);
    exchange.respond("hello\n");
  };
  http::CallOptions options;
  options.fields = fields_of({{"X-Mark", "7"}});
  Outcome outcome;
  const http::Call call = fetch(outcome, std::move(options), "http://a.example/p?q");
  turns();
  EXPECT_EQ(outcome.text(), "hello\n");
  EXPECT_EQ(seen, "GET /p?q a.example 7");
  EXPECT_EQ((*outcome.result)->version(), http::Version::http_2);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp2, ManyCallsShareOneConnection) {
  keep();
  std::vector<Outcome> outcomes(50);
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  ASSERT_EQ(kept_.size(), 50u);
  EXPECT_EQ(opened.size(), 1u);
  for (std::size_t i = kept_.size(); i-- > 0;) kept_[i]->exchange.respond(std::to_string(i));
  turns();
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(outcomes[i].text(), std::to_string(i));
  EXPECT_EQ(client_.metrics().connections, 1u);
  EXPECT_EQ(client_.metrics().reused, 49u);
}

TEST_F(ClientHttp2, SecondConnectionIsOpenedWhenStreamsRunOut) {
  begin({.max_per_origin = 2}, {.max_streams = 3});
  keep();
  Outcome first;
  const http::Call call = fetch(first);
  turns();  // The settings are known.
  std::vector<Outcome> outcomes(8);
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  EXPECT_EQ(opened.size(), 2u);
  EXPECT_EQ(kept_.size(), 6u);
  EXPECT_EQ(client_.metrics().waiting, 3u);
  for (std::size_t i = 0; i < 9; ++i) {
    ASSERT_LT(i, kept_.size());
    kept_[i]->exchange.respond("x");
    turns();
  }
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text(), "x");
  EXPECT_EQ(opened.size(), 2u);
}

TEST_F(ClientHttp2, OwnStreamLimitIsRespected) {
  begin({.max_per_origin = 1}, {}, {.max_streams = 2});
  keep();
  std::vector<Outcome> outcomes(3);
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  EXPECT_EQ(kept_.size(), 2u);
  calls[0].cancel();
  turns();
  EXPECT_EQ(kept_.size(), 3u);
}

TEST_F(ClientHttp2, BodyIsSent) {
  echo();
  for (const std::size_t size : {1u, 2000u, 70'000u, 3'000'000u}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    Outcome outcome;
    const http::Call call = fetch(outcome, {.method = Method::post, .body = bytes_of(body)});
    turns(2000);
    EXPECT_EQ(outcome.text() == body, true) << size;
  }
  EXPECT_EQ(opened.size(), 1u);
}

TEST_F(ClientHttp2, UploadFollowsReaderBackPressure) {
  keep();
  Hearer hearer;
  http::Call call =
      client_.send("http://a/", hearer, {.method = Method::post, .upload = http::kUnknownSize});
  turns();
  ASSERT_EQ(kept_.size(), 1u);
  kept_[0]->exchange.pause();
  for (int i = 0; i < 100 && !call.is_full(); ++i) {
    call.write(std::string(64 * 1024, 'x'));
    turns();
  }
  EXPECT_TRUE(call.is_full());
  EXPECT_THAT(hearer.told, ElementsAre("upload"));
  kept_[0]->exchange.resume();
  turns(2000);
  EXPECT_THAT(hearer.told, ElementsAre("upload", "drained"));
  EXPECT_TRUE(call.end(fields_of({{"X-Sum", "5"}})));
  turns();
  EXPECT_TRUE(kept_[0]->is_ended);
  EXPECT_EQ(kept_[0]->trailer, "x-sum=5");
  kept_[0]->exchange.respond("thanks");
  turns();
  EXPECT_EQ(hearer.body, "thanks");
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_FALSE(hearer.error);
}

TEST_F(ClientHttp2, SizedUploadEndsAtItsSize) {
  echo();
  Hearer hearer;
  http::Call call = client_.send("http://a/", hearer, {.method = Method::put, .upload = 6});
  turns();
  call.write("abc");
  turns();
  call.write("def");
  turns();
  EXPECT_EQ(hearer.body, "abcdef");
  EXPECT_EQ(hearer.told.back(), "closed");
}

TEST_F(ClientHttp2, ExpectContinueDefersBody) {
  std::string expectation;
  Exchange waiting;
  on_request = [&](Exchange exchange) {
    expectation = exchange.request().fields()["Expect"];
    waiting = std::move(exchange);
  };
  Outcome outcome;
  http::CallOptions options{.method = Method::post, .body = bytes_of("body")};
  options.expect_continue = 1s;
  const http::Call call = fetch(outcome, std::move(options));
  turns();
  EXPECT_EQ(expectation, "100-continue");
  EXPECT_EQ(server_.metrics().received, 0u);
  read_body(std::move(waiting), 100,
            [](Exchange whole, Bytes body) { whole.respond(Status::ok, {}, body); });
  turns();
  EXPECT_EQ(outcome.text(), "body");
}

TEST_F(ClientHttp2, ExpectContinueTimesOut) {
  keep();
  Outcome outcome;
  http::CallOptions options{.method = Method::post, .body = bytes_of("body")};
  options.expect_continue = 1s;
  Exchange waiting;
  on_request = [&](Exchange exchange) { waiting = std::move(exchange); };
  const http::Call call = fetch(outcome, std::move(options));
  turns();
  clock_.advance(2s);
  turns();
  waiting.respond("late");
  turns();
  EXPECT_EQ(outcome.text(), "late");
}

TEST_F(ClientHttp2, TrailersFollowBody) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("body");
    exchange.end(fields_of({{"X-Sum", "9"}}));
  };
  Hearer hearer;
  const http::Call call = client_.send("http://a/", hearer, {});
  turns();
  EXPECT_THAT(hearer.told, ElementsAre("200", "body", "end", "closed"));
  EXPECT_EQ(hearer.trailers, "9");
}

TEST_F(ClientHttp2, TrailersMayFollowEmptyBody) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.end(fields_of({{"X-Sum", "0"}}));
  };
  Hearer hearer;
  const http::Call call = client_.send("http://a/", hearer, {});
  turns();
  EXPECT_THAT(hearer.told, ElementsAre("200", "end", "closed"));
  EXPECT_EQ(hearer.trailers, "0");
}

TEST_F(ClientHttp2, TeFieldAnnouncesTrailerSupport) {
  std::string seen;
  on_request = [&](Exchange exchange) {
    seen += std::string(exchange.request()[http::FieldId::te]) + ";";
    exchange.respond("x");
  };
  Outcome outcomes[2];
  const http::Call silent = fetch(outcomes[0]);
  turns();
  const http::Call call = fetch(outcomes[1], {.accept_trailers = true});
  turns();
  EXPECT_EQ(seen, ";trailers;");
}

TEST_F(ClientHttp2, InformationalResponsesMayPrecedeResponse) {
  on_request = [](Exchange exchange) {
    exchange.inform(Status::early_hints, fields_of({{"Link", "</a>"}}));
    exchange.respond("x");
  };
  Hearer hearer;
  const http::Call call = client_.send("http://a/", hearer, {});
  turns();
  EXPECT_THAT(hearer.told, ElementsAre("103", "200", "body", "end", "closed"));
  EXPECT_EQ(hearer.link, "</a>");
}

TEST_F(ClientHttp2, SomeResponsesHaveNoBody) {
  on_request = [](Exchange exchange) {
    const std::string target(exchange.request().target());
    if (target == "/204") return void(exchange.respond(Status::no_content));
    if (target == "/304") return void(exchange.respond(Status::not_modified));
    exchange.respond("hello\n");
  };
  for (const auto& [path, method] :
       {std::pair("/204", Method::get), {"/304", Method::get}, {"/", Method::head}}) {
    Hearer hearer;
    const http::Call call =
        client_.send(std::string("http://a") + path, hearer, {.method = method});
    turns();
    EXPECT_EQ(hearer.told.size(), 2u) << path;
    EXPECT_EQ(hearer.told.back(), "closed") << path;
    EXPECT_FALSE(hearer.error);
  }
}

// Without a window update for unread bytes, the server stops.
TEST_F(ClientHttp2, BodyIsHeldBackWhilePaused) {
  begin({}, {}, {.stream_window = 4096});
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok, {}, 1'000'000);
    exchange.write(std::string(1'000'000, 'x'));
    exchange.end();
  };
  Hearer hearer;
  http::Call call = client_.send("http://a/", hearer, {});
  hearer.on_told = [&](const std::string& what) {
    if (what == "body") call.pause();
  };
  turns();
  const std::size_t shown = hearer.body.size();
  EXPECT_LE(shown, 4096u);
  turns();
  EXPECT_EQ(hearer.body.size(), shown);
  Outcome other;
  on_request = [](Exchange exchange) { exchange.respond("quick"); };
  const http::Call second = fetch(other, {}, "http://a/");
  turns();
  EXPECT_EQ(other.text(), "quick");
  EXPECT_EQ(opened.size(), 1u);
  hearer.on_told = {};
  call.resume();
  turns(3000);
  EXPECT_EQ(hearer.body.size(), 1'000'000u);
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_FALSE(hearer.error);
}

TEST_F(ClientHttp2, CompleteResponseIsReadAfterConnectionClosed) {
  Hearer hearer;
  http::Call call = client_.send("http://a/", hearer, {});
  call.pause();
  turns();
  server_ = {};
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_THAT(hearer.told, ElementsAre("200"));
  call.resume();
  turns();
  EXPECT_EQ(hearer.body, "hello\n");
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_FALSE(hearer.error);
}

TEST_F(ClientHttp2, CancelledCallResetsOnlyItsStream) {
  keep();
  Outcome a, b;
  http::Call first = fetch(a), second = fetch(b);
  turns();
  ASSERT_EQ(kept_.size(), 2u);
  first.cancel();
  turns();
  EXPECT_TRUE(kept_[0]->is_closed);
  EXPECT_FALSE(kept_[1]->is_closed);
  kept_[1]->exchange.respond("b");
  turns();
  EXPECT_FALSE(a.is_there());
  EXPECT_EQ(b.text(), "b");
  EXPECT_EQ(client_.metrics().connections, 1u);
}

TEST_F(ClientHttp2, DeadlineResetsOnlyStream) {
  keep();
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s}), second = fetch(b);
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  EXPECT_TRUE(kept_.at(0)->is_closed);
  kept_.at(1)->exchange.respond("b");
  turns();
  EXPECT_EQ(b.text(), "b");
  EXPECT_EQ(opened.size(), 1u);
}

TEST_F(ClientHttp2, RedirectsAreFollowed) {
  on_request = [](Exchange exchange) {
    if (exchange.request().target() == "/to") return void(exchange.respond("there"));
    exchange.respond(Status::found, fields_of({{"Location", "/to"}}),
                     bytes_of(std::string(200'000, 'x')));
  };
  Outcome outcome;
  const http::Call call = fetch(outcome, {.max_redirects = 1});
  turns(200);
  EXPECT_EQ(outcome.text(), "there");
  EXPECT_EQ(opened.size(), 1u);
}

TEST_F(ClientHttp2, CookiesAndDecompressionWork) {
  http::CookieJar jar;
  begin({.jar = &jar}, {});
  std::string cookie;
  on_request = [&](Exchange exchange) {
    cookie = exchange.request().fields()["Cookie"];
    exchange.set_compression(http::Compression::by_type);
    exchange.respond(Status::ok, fields_of({{"Set-Cookie", "a=1"}, {"Content-Type", "text/plain"}}),
                     bytes_of(std::string(100'000, 'x')));
  };
  for (const std::string_view expected : {"", "a=1"}) {
    Outcome outcome;
    const http::Call call = fetch(outcome, {.decompress = true});
    turns(200);
    EXPECT_EQ(outcome.text(), std::string(100'000, 'x'));
    EXPECT_EQ(cookie, expected);
  }
}

TEST_F(ClientHttp2, BodyLengthIsLimited) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(100'000, 'x')); };
  Outcome outcome;
  const http::Call call = fetch(outcome, {.max_body = 1000});
  turns();
  EXPECT_EQ(outcome.error(), http::HttpError::body_too_long);
  EXPECT_EQ(client_.metrics().connections, 1u);
}

TEST_F(ClientHttp2, IdleConnectionIsClosedAfterItsTimeout) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  EXPECT_EQ(client_.metrics().idle, 1u);
  clock_.advance(31s);
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(ClientHttp2, CloseIdleClosesOnlyIdleConnections) {
  keep();
  Outcome a;
  const http::Call call = fetch(a);
  turns();
  client_.close_idle();
  EXPECT_EQ(client_.metrics().connections, 1u);
  kept_.at(0)->exchange.respond("a");
  turns();
  EXPECT_EQ(a.text(), "a");
  client_.close_idle();
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

// The server drains: streams that it has begun continue, and later calls use another connection.
TEST_F(ClientHttp2, DrainingServerLosesNoCall) {
  keep();
  Outcome a, b;
  const http::Call first = fetch(a);
  turns();
  server_.drain(10s, [] {});
  turns();
  kept_.at(0)->exchange.respond("a");
  turns();
  EXPECT_EQ(a.text(), "a");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

}  // namespace
}  // namespace spate::testing
