// A client's connections of HTTP/1.1: when they are used again, and repeated requests.
#include <chrono>
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ClientPool : public HttpClientTest {
 protected:
  http::Call get(std::string_view url, Outcome& outcome, http::CallOptions options = {}) {
    return client_.fetch(url, outcome.note(), std::move(options));
  }
};

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

// ---- repeated requests

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

}  // namespace
}  // namespace spate::testing
