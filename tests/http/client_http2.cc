// The client over HTTP/2, with our server: calls share a connection.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "http/client_pair_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::Status;

class ClientHttp2 : public ClientPairTest {
 protected:
  ClientHttp2() : ClientPairTest(HttpProtocol::http2) {}
};

TEST_F(ClientHttp2, ManyCallsShareOneConnection) {
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
  std::vector<Outcome> outcomes(3);
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  EXPECT_EQ(kept_.size(), 2u);
  calls[0].cancel();
  turns();
  EXPECT_EQ(kept_.size(), 3u);
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

TEST_F(ClientHttp2, BytesThatArriveWhileOthersAreShownFollow) {
  Hearer hearer;
  http::Call call = client_.send("http://a/", hearer, {});
  turns();
  Exchange& exchange = kept_.back()->exchange;
  exchange.begin(Status::ok, {}, 6);
  call.pause();
  exchange.write("one");
  turns();
  EXPECT_EQ(hearer.body, "");
  bool is_first = true;
  hearer.on_told = [&](const std::string& what) {
    if (what != "body" || !std::exchange(is_first, false)) return;
    exchange.write("two");
    exchange.end();
    turns();
  };
  call.resume();
  turns();
  EXPECT_EQ(hearer.body, "onetwo");
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_FALSE(hearer.error);
}

TEST_F(ClientHttp2, CancelledCallResetsOnlyItsStream) {
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

TEST_F(ClientHttp2, RedirectWithLongBodyUsesSameConnection) {
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

TEST_F(ClientHttp2, TooLongBodyResetsOnlyStream) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(100'000, 'x')); };
  Outcome outcome;
  const http::Call call = fetch(outcome, {.max_body = 1000});
  turns();
  EXPECT_EQ(outcome.error(), http::HttpError::body_too_long);
  EXPECT_EQ(client_.metrics().connections, 1u);
}

}  // namespace
}  // namespace spate::testing
