// The client's connections: their reuse, limits and end, and calls that are repeated on another.
#include <chrono>
#include <string>
#include <vector>

#include "http/client_pair_harness.h"
#include "spate/net/relay.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using http::Method;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A connection carries one call at a time, over HTTP/2 also, unless a test makes another client.
class ClientConnections : public ClientProtocolTest {
 protected:
  ClientConnections() { make_one_call_client(); }

  void make_one_call_client(http::ClientOptions options = {}) {
    make_client(std::move(options), {.max_streams = 1});
  }
  http::Call get(std::string_view url, Outcome& outcome) { return fetch(outcome, {}, url); }
  void answer_nth(std::size_t index) {
    kept_.at(index)->exchange.respond("ok");
    turns();
  }
};

TEST_P(ClientConnections, ConnectionIsReused) {
  for (int i = 0; i < 2; ++i) {
    Outcome outcome;
    ask_and_answer(outcome);
    EXPECT_EQ(outcome.text(), "ok");
  }
  EXPECT_EQ(opened.size(), 1u);
  EXPECT_EQ(client_.metrics().reused, 1u);
}

TEST_P(ClientConnections, OriginsDoNotShareConnections) {
  Outcome a, b, c, d;
  const http::Call first = get("http://a.example/", a), second = get("http://b.example/", b),
                   third = get("http://a.example:81/", c);
  turns();
  EXPECT_THAT(opened, ElementsAre("a.example:80", "b.example:80", "a.example:81"));
  for (std::size_t i = 0; i < 3; ++i) answer_nth(i);
  const http::Call fourth = get("http://b.example/again", d);
  turns();
  EXPECT_EQ(opened.size(), 3u);
  EXPECT_THAT(asked(), StartsWith("GET /again\nhost: b.example\n"));
}

// ---- idle connections

TEST_P(ClientConnections, IdleConnectionIsClosedAfterItsTimeout) {
  Outcome outcome;
  ask_and_answer(outcome);
  pass(29s);
  EXPECT_EQ(client_.metrics().idle, 1u);
  pass(2s);
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_P(ClientConnections, NoConnectionIsKeptIfIdleTimeoutIsZero) {
  make_client({.idle_timeout = Nanos{0}});
  Outcome outcome;
  ask_and_answer(outcome);
  EXPECT_EQ(outcome.status(), 200);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_P(ClientConnections, IdleTimeoutDoesNotEndCall) {
  Outcome first, second;
  ask_and_answer(first);
  const http::Call call = fetch(second, {.deadline = Nanos{0}});
  turns();
  pass(60s);
  EXPECT_FALSE(second.is_there());
  answer();
  EXPECT_EQ(second.status(), 200);
}

TEST_P(ClientConnections, CloseIdleClosesOnlyIdleConnections) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  client_.close_idle();
  EXPECT_EQ(client_.metrics().connections, 1u);
  answer();
  EXPECT_EQ(outcome.text(), "ok");
  client_.close_idle();
  EXPECT_EQ(client_.metrics().connections, 0u);
  turns();
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_P(ClientConnections, DrainingServerLosesNoCall) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  server_.drain(10s, [] {});
  turns();
  answer();
  EXPECT_EQ(outcome.text(), "ok");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_P(ClientConnections, OldestIdleConnectionIsClosedAtTotalLimit) {
  make_one_call_client({.max_connections = 2});
  Outcome a, b, c, d;
  const http::Call first = get("http://a.example/", a);
  turns();
  answer();
  clock_.advance(1s);
  const http::Call second = get("http://b.example/", b);
  turns();
  answer();
  const http::Call third = get("http://c.example/", c);
  turns();
  EXPECT_EQ(client_.metrics().connections, 2u);
  EXPECT_THAT(opened, ElementsAre("a.example:80", "b.example:80", "c.example:80"));
  const http::Call fourth = get("http://b.example/", d);
  turns();
  EXPECT_EQ(opened.size(), 3u);
}

// ---- calls that wait

TEST_P(ClientConnections, CallsBeyondLimitWaitInOrder) {
  make_one_call_client({.max_per_origin = 2});
  Outcome outcomes[5];
  std::vector<http::Call> calls;
  for (int i = 0; i < 5; ++i)
    calls.push_back(get("http://a.example/" + std::to_string(i), outcomes[i]));
  turns();
  EXPECT_EQ(kept_.size(), 2u);
  EXPECT_EQ(client_.metrics().waiting, 3u);
  answer_nth(1);
  EXPECT_THAT(asked(), StartsWith("GET /2\n"));
  answer_nth(0);
  EXPECT_THAT(asked(), StartsWith("GET /3\n"));
  answer_nth(2);
  EXPECT_THAT(asked(), StartsWith("GET /4\n"));
  EXPECT_EQ(opened.size(), 2u);
}

TEST_P(ClientConnections, LongestWaitingCallGetsFirstFreeConnection) {
  make_one_call_client({.max_per_origin = 1});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/1", a);
  http::Call second = get("http://a.example/2", b);
  const http::Call third = get("http://a.example/3", c);
  turns();
  second.cancel();
  answer();
  EXPECT_THAT(asked(), StartsWith("GET /3\n"));
}

TEST_P(ClientConnections, WaitingCallKeepsItsOwnDeadline) {
  make_one_call_client({.max_per_origin = 1});
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 10s});
  turns();
  const http::Call second = fetch(b, {.deadline = 1s});
  pass(1100ms);
  EXPECT_EQ(b.error(), Error::deadline);
  EXPECT_FALSE(a.is_there());
  EXPECT_EQ(client_.metrics().waiting, 0u);
}

TEST_P(ClientConnections, BusyOriginDoesNotStarveAnother) {
  make_one_call_client({.max_connections = 1});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/1", a);
  turns();
  const http::Call second = get("http://b.example/2", b), third = get("http://a.example/3", c);
  turns();
  EXPECT_EQ(kept_.size(), 1u);
  answer();
  EXPECT_EQ(a.status(), 200);
  // Before a later call whose origin had a connection.
  EXPECT_THAT(asked(), StartsWith("GET /2\n"));
  EXPECT_EQ(client_.metrics().connections, 1u);
  answer();
  EXPECT_THAT(asked(), StartsWith("GET /3\n"));
  answer();
  EXPECT_EQ(c.status(), 200);
}

TEST_P(ClientConnections, CancelledCallFreesItsSlotForAnotherOrigin) {
  make_one_call_client({.max_connections = 1});
  Outcome a, b;
  http::Call first = get("http://a.example/", a);
  turns();
  const http::Call second = get("http://b.example/", b);
  turns();
  EXPECT_EQ(opened.size(), 1u);
  first.cancel();
  turns();
  ASSERT_EQ(opened.size(), 2u);
  EXPECT_THAT(asked(), StartsWith("GET /\nhost: b.example\n"));
}

// ---- connections that cannot be made

TEST_P(ClientConnections, ConnectErrorIsErrorOfCall) {
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcome;
  const http::Call call = fetch(outcome);
  EXPECT_FALSE(outcome.is_there());
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_refused);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_P(ClientConnections, EachWaitingCallGetsItsOwnConnectError) {
  make_client({.max_per_origin = 1});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcomes[3];
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error(), std::errc::connection_refused);
  EXPECT_EQ(opened.size(), 3u);
}

TEST_P(ClientConnections, UnneededConnectionIsNotOpened) {
  Outcome outcome;
  http::Call call = fetch(outcome);
  call.cancel();
  turns();
  EXPECT_THAT(opened, IsEmpty());
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// ---- repeated requests

// Its connections can be closed without a message of the server.
class ClientRepeats : public ClientProtocolTest {
 protected:
  void accept(Stream stream) override {
    auto [mine, theirs] = must(Stream::memory_pair(loop_));
    relays_.push_back(relay(std::move(stream), std::move(mine), [](const RelayResult&) {}));
    ClientProtocolTest::accept(std::move(theirs));
  }
  void close_connections() {
    relays_.clear();
    turns();
  }
  // Makes a call that leaves a connection in the pool.
  void warm_up() {
    Outcome outcome;
    ask_and_answer(outcome);
    ASSERT_EQ(client_.metrics().idle, 1u);
  }

  std::vector<Relaying> relays_;
  Outcome outcome_;
  Hearer hearer_;
};

TEST_P(ClientRepeats, GetIsRepeatedOnFreshConnection) {
  warm_up();
  const http::Call call = fetch(outcome_);
  turns();
  close_connections();
  EXPECT_EQ(opened.size(), 2u);
  EXPECT_EQ(kept_.size(), 3u);
  EXPECT_EQ(asked(), "GET /\nhost: a.example\n\n");
  answer();
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ(client_.metrics().repeated, 1u);
}

TEST_P(ClientRepeats, RequestIsRepeatedOnlyOnce) {
  warm_up();
  const http::Call call = fetch(outcome_);
  turns();
  close_connections();
  close_connections();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
  EXPECT_EQ(opened.size(), 2u);
}

TEST_P(ClientRepeats, BodyIsSentAgain) {
  warm_up();
  const http::Call call = fetch(outcome_, {.method = Method::put, .body = bytes_of("the body")});
  turns();
  close_connections();
  EXPECT_EQ(kept_.size(), 3u);
  EXPECT_THAT(asked(), EndsWith("\n\nthe body"));
}

TEST_P(ClientRepeats, NothingIsRepeatedFromFreshConnection) {
  const http::Call call = fetch(outcome_);
  turns();
  close_connections();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(ClientRepeats, NothingIsRepeatedAfterResponseHasBegun) {
  warm_up();
  const http::Call call = fetch(outcome_);
  turns();
  kept_.back()->exchange.begin(http::Status::ok, {}, 5);
  turns();
  close_connections();
  EXPECT_EQ(outcome_.error(), HttpError::response_truncated);
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(ClientRepeats, PostIsNotRepeated) {
  warm_up();
  const http::Call call = fetch(outcome_, {.method = Method::post, .body = bytes_of("x")});
  turns();
  close_connections();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(ClientRepeats, PostWithIdempotencyKeyIsRepeated) {
  warm_up();
  const http::Call call = fetch(outcome_, {.method = Method::post,
                                           .fields = fields_of({{"Idempotency-Key", "7"}}),
                                           .body = bytes_of("x")});
  turns();
  close_connections();
  EXPECT_EQ(opened.size(), 2u);
  EXPECT_EQ(kept_.size(), 3u);
}

TEST_P(ClientRepeats, StartedUploadIsNotRepeated) {
  warm_up();
  http::Call call = client_.send(kUrl, hearer_, {.method = Method::put, .upload = 4});
  call.write("ab");
  turns();
  close_connections();
  EXPECT_EQ(hearer_.error, std::errc::connection_reset);
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(ClientRepeats, UnsentUploadIsRepeated) {
  warm_up();
  http::Call call = client_.send(kUrl, hearer_, {.method = Method::put, .upload = 2});
  turns();
  close_connections();
  ASSERT_EQ(opened.size(), 2u);
  call.write("ab");
  turns();
  EXPECT_THAT(asked(), EndsWith("\n\nab"));
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientConnections, kProtocols, name_of_protocol);
INSTANTIATE_TEST_SUITE_P(Protocols, ClientRepeats, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
