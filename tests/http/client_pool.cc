// A client's connections: their number, assignment and end, and repeated requests.
#include <chrono>
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ClientPool : public HttpClientTest {
 protected:
  http::Call get(std::string_view url, Outcome& outcome, http::CallOptions options = {}) {
    return client_.fetch(url, outcome.note(), std::move(options));
  }
  http::Call post(Outcome& outcome) {
    return fetch(outcome, {.method = http::Method::post, .body = bytes_of("x")});
  }
};

TEST_F(ClientPool, ConnectionIsReused) {
  warm_up();
  Outcome second;
  const http::Call call = fetch(second);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_THAT(peer().heard(), StartsWith("GET / "));
  peer().answer(kOk);
  turns();
  EXPECT_EQ(second.text(), "ok");
  EXPECT_EQ(client_.metrics().reused, 1u);
}

// A response that arrives between two calls would be taken for the response to the second.
TEST_F(ClientPool, ConnectionIsNotReusedAfterUnsolicitedResponse) {
  warm_up();
  peer().answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL");
  Outcome second;
  const http::Call call = fetch(second);  // The loop has not reported it yet.
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).answer(kOk);
  turns();
  EXPECT_EQ(second.text(), "ok");
  EXPECT_TRUE(peer().is_closed);
}

TEST_F(ClientPool, ConnectionIsNotReusedAfterUndetectedEof) {
  warm_up();
  peer().stream().end();
  Outcome second;
  const http::Call call = client_.fetch(
      kUrl, second.note(), {.method = http::Method::post, .body = bytes_of("x")});
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).answer(kOk);
  turns();
  EXPECT_EQ(second.text(), "ok");
  EXPECT_EQ(peer().heard(), "");
}

TEST_F(ClientPool, ConnectionClosedByServerIsNotReused) {
  Outcome first;
  ask_and_answer(first, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_TRUE(peer().is_ended);
}

TEST_F(ClientPool, Http10ConnectionIsReusedOnlyWithKeepAlive) {
  Outcome first;
  ask_and_answer(first, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.metrics().connections, 0u);
  Outcome second;
  ask_and_answer(second, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientPool, MostRecentlyUsedConnectionIsUsedFirst) {
  Outcome a, b;
  const http::Call first = fetch(a), second = fetch(b);
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).answer(kOk);
  turns();
  peer(0).answer(kOk);
  turns();
  peer(0).heard(), peer(1).heard();
  Outcome c;
  const http::Call third = fetch(c);
  turns();
  EXPECT_THAT(peer(0).heard(), StartsWith("GET"));
  EXPECT_THAT(peer(1).heard(), IsEmpty());
}

TEST_F(ClientPool, EofOrDataClosesIdleConnection) {
  warm_up();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  warm_up();
  peer(1).answer("x");
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(peer(1).error, std::errc::connection_reset);
}

TEST_F(ClientPool, IdleConnectionIsClosedAfterItsTimeout) {
  warm_up();
  pass(29s);
  EXPECT_EQ(client_.metrics().idle, 1u);
  pass(2s);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, IdleConnectionIsClosedOneSecondBeforeServerTimeout) {
  Outcome first;
  ask_and_answer(first,
                 "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, Timeout=5\r\nContent-Length: 0\r\n\r\n");
  pass(3900ms);
  EXPECT_EQ(client_.metrics().idle, 1u);
  pass(200ms);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, ConnectionWithTooShortServerTimeoutIsNotKept) {
  Outcome first;
  ask_and_answer(first, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, NoConnectionIsKeptIfIdleTimeoutIsZero) {
  make_client({.idle_timeout = Nanos{0}});
  Outcome first;
  ask_and_answer(first, kOk);
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, IdleTimeoutDoesNotEndCall) {
  warm_up();
  Outcome second;
  const http::Call call = fetch(second, {.deadline = Nanos{0}});
  turns();
  pass(60s);
  EXPECT_FALSE(second.is_there());
  peer().answer(kOk);
  turns();
  EXPECT_EQ(second.status(), 200);
}

TEST_F(ClientPool, IdleConnectionsAreClosedOnRequest) {
  warm_up();
  client_.close_idle();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, OriginsDoNotShareConnections) {
  Outcome a, b, c;
  const http::Call first = get("http://a.example/", a), second = get("http://b.example/", b),
                   third = get("http://a.example:81/", c);
  turns();
  EXPECT_THAT(opened, ElementsAre("a.example:80", "b.example:80", "a.example:81"));
  for (const auto& each : peers) each->answer(kOk);
  turns();
  Outcome d;
  const http::Call fourth = get("http://b.example/again", d);
  turns();
  EXPECT_EQ(peers.size(), 3u);
  EXPECT_THAT(peer(1).heard(), HasSubstr("GET /again "));
}

TEST_F(ClientPool, CallsBeyondLimitWaitInOrder) {
  make_client({.max_per_origin = 2});
  Outcome outcomes[5];
  std::vector<http::Call> calls;
  for (int i = 0; i < 5; ++i)
    calls.push_back(get("http://a.example/" + std::to_string(i), outcomes[i]));
  turns();
  EXPECT_EQ(peers.size(), 2u);
  EXPECT_EQ(client_.metrics().waiting, 3u);
  peer(0).heard(), peer(1).heard();
  peer(1).answer(kOk);
  turns();
  EXPECT_THAT(peer(1).heard(), StartsWith("GET /2 "));
  peer(0).answer(kOk);
  turns();
  EXPECT_THAT(peer(0).heard(), StartsWith("GET /3 "));
  peer(0).answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  turns();
  ASSERT_EQ(peers.size(), 3u);  // Replaces the closed one.
  EXPECT_THAT(peer(2).heard(), StartsWith("GET /4 "));
}

TEST_F(ClientPool, LongestWaitingCallGetsFirstFreeConnection) {
  make_client({.max_per_origin = 1});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/1", a);
  http::Call second = get("http://a.example/2", b);
  const http::Call third = get("http://a.example/3", c);
  turns();
  second.cancel();
  peer().heard();
  peer().answer(kOk);
  turns();
  EXPECT_THAT(peer().heard(), StartsWith("GET /3 "));
}

TEST_F(ClientPool, WaitingCallKeepsItsOwnDeadline) {
  make_client({.max_per_origin = 1});
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 10s});
  turns();
  const http::Call second = fetch(b, {.deadline = 1s});
  pass(1100ms);
  EXPECT_EQ(b.error(), Error::deadline);
  EXPECT_FALSE(a.is_there());
  EXPECT_EQ(client_.metrics().waiting, 0u);
}

TEST_F(ClientPool, OldestIdleConnectionIsClosedAtTotalLimit) {
  make_client({.max_connections = 2});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/", a);
  turns();
  peer(0).answer(kOk);
  turns();
  clock_.advance(1s);
  const http::Call second = get("http://b.example/", b);
  turns();
  peer(1).answer(kOk);
  turns();
  const http::Call third = get("http://c.example/", c);
  turns();
  EXPECT_EQ(peers.size(), 3u);
  EXPECT_TRUE(peer(0).is_ended);
  EXPECT_FALSE(peer(1).is_ended);
  EXPECT_EQ(client_.metrics().connections, 2u);
}

TEST_F(ClientPool, BusyOriginDoesNotStarveAnother) {
  make_client({.max_connections = 1});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/1", a);
  turns();
  const http::Call second = get("http://b.example/2", b), third = get("http://a.example/3", c);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  peer(0).answer(kOk);
  turns();
  EXPECT_EQ(a.status(), 200);
  ASSERT_EQ(peers.size(), 2u);  // Before a later call whose origin had a connection.
  EXPECT_THAT(peer(1).heard(), StartsWith("GET /2 "));
  EXPECT_EQ(client_.metrics().connections, 1u);
  peer(1).answer(kOk);
  turns();
  ASSERT_EQ(peers.size(), 3u);
  EXPECT_THAT(peer(2).heard(), StartsWith("GET /3 "));
  peer(2).answer(kOk);
  turns();
  EXPECT_EQ(c.status(), 200);
}

TEST_F(ClientPool, CancelledCallFreesItsSlotForAnotherOrigin) {
  make_client({.max_connections = 1});
  Outcome a, b;
  http::Call first = get("http://a.example/", a);
  turns();
  const http::Call second = get("http://b.example/", b);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  first.cancel();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peer(1).heard(), StartsWith("GET / "));
}

// ---- repeated requests

TEST_F(ClientPool, GetThatCrossesServerCloseIsRetriedOnFreshConnection) {
  warm_up();
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).stream().end();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peer(1).heard(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  peer(1).answer(kOk);
  turns();
  EXPECT_EQ(outcome.text(), "ok");
  EXPECT_EQ(client_.metrics().repeated, 1u);
}

TEST_F(ClientPool, ResetIsRetriedLikeEof) {
  warm_up();
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = http::Method::put, .body = bytes_of("the body")});
  turns();
  peer(0).stream().abort();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peer(1).heard(), HasSubstr("\r\n\r\nthe body"));
}

TEST_F(ClientPool, RequestIsRetriedOnlyOnce) {
  warm_up();
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).stream().end();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 2u);
}

TEST_F(ClientPool, RetryDoesNotUseIdleConnection) {
  Outcome a, b, c;
  {
    const http::Call first = fetch(a), second = fetch(b);
    turns();
    peer(0).answer(kOk), peer(1).answer(kOk);
    turns();
  }
  ASSERT_EQ(client_.metrics().idle, 2u);
  peer(0).heard(), peer(1).heard();
  const http::Call third = fetch(c);
  turns();
  peer(0).heard().empty() ? peer(1).stream().end() : peer(0).stream().end();
  turns();
  EXPECT_EQ(peers.size(), 3u);
}

TEST_F(ClientPool, IdleConnectionIsClosedForRetryAtLimit) {
  make_client({.max_per_origin = 2});
  Outcome a, b, c, d;
  {
    const http::Call first = fetch(a), second = fetch(b);
    turns();
    peer(0).answer(kOk), peer(1).answer(kOk);
    turns();
  }
  const http::Call third = fetch(c), fourth = fetch(d);
  turns();
  peer(0).stream().end(), peer(1).stream().end();
  turns();
  EXPECT_EQ(peers.size(), 4u);
  peer(2).answer(kOk), peer(3).answer(kOk);
  turns();
  EXPECT_EQ(c.status(), 200);
  EXPECT_EQ(d.status(), 200);
}

TEST_F(ClientPool, NothingIsRetriedFromFreshConnection) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, NothingIsRetriedAfterFirstResponseByte) {
  warm_up();
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).answer("H");
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), http::HttpError::response_truncated);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, PostIsNotRetried) {
  warm_up();
  Outcome outcome;
  const http::Call call = post(outcome);
  turns();
  EXPECT_THAT(peer(0).heard(), StartsWith("POST"));
  peer(0).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, PostWithIdempotencyKeyIsRetried) {
  warm_up();
  http::Fields fields;
  fields.add("Idempotency-Key", "7");
  Outcome outcome;
  const http::Call call = fetch(
      outcome, {.method = http::Method::post, .fields = std::move(fields), .body = bytes_of("x")});
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(peers.size(), 2u);
}

TEST_F(ClientPool, StartedUploadIsNotRetried) {
  warm_up();
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.method = http::Method::put, .upload = 4});
  call.write("ab");
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(hearer.error, std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, UnsentUploadIsRetried) {
  warm_up();
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.method = http::Method::put, .upload = 2});
  turns();
  peer(0).stream().end();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  call.write("ab");
  turns();
  EXPECT_THAT(peer(1).heard(), HasSubstr("\r\n\r\nab"));
}

// ---- connections that cannot be made

TEST_F(ClientPool, ConnectErrorIsErrorOfCall) {
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcome;
  const http::Call call = fetch(outcome);
  EXPECT_FALSE(outcome.is_there());
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_refused);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, EachWaitingCallGetsItsOwnConnectError) {
  make_client({.max_per_origin = 1});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcomes[3];
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error(), std::errc::connection_refused);
  EXPECT_EQ(opened.size(), 3u);
}

TEST_F(ClientPool, UnneededConnectionIsNotOpened) {
  Outcome outcome;
  http::Call call = fetch(outcome);
  call.cancel();
  turns();
  EXPECT_THAT(opened, IsEmpty());
  EXPECT_EQ(client_.metrics().connections, 0u);
}

}  // namespace
}  // namespace spate::testing
