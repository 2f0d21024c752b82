// Servers of HTTP/2 that stop answering: their connections take no new calls.
#include <chrono>
#include <string>
#include <vector>

#include "http/client_http2_harness.h"
#include "spate/coro/or_return.h"
#include "spate/coro/time.h"
#include "spate/http/coro.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// ---- calls that end at their deadline

class ClientHttp2Lateness : public Http2PeerTest {};

TEST_F(ClientHttp2Lateness, CallAfterDeadlineInSilenceUsesNewConnection) {
  begin2();
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s});
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
  const http::Call second = fetch(b);
  turns();
  ASSERT_EQ(peers.size(), 2u);
  greet(peer(1));
  peer(1).answer(answer_of(1));
  turns();
  EXPECT_EQ(b.text(), "ok");
}

TEST_F(ClientHttp2Lateness, ActiveCallsOfSilentConnectionContinue) {
  begin2();
  Outcome late, patient, next;
  const http::Call first = fetch(late, {.deadline = 1s}), second = fetch(patient);
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(late.error(), Error::deadline);
  EXPECT_EQ(heard().last_reset, 8);
  const http::Call third = fetch(next);
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(client_.metrics().connections, 2u);
  peer().answer(answer_of(5, "after all"));
  turns();
  EXPECT_EQ(patient.text(), "after all");
  EXPECT_EQ(client_.metrics().connections, 1u);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
  EXPECT_FALSE(next.is_there());
}

TEST_F(ClientHttp2Lateness, WaitingCallTakesSlotOfSilentConnection) {
  make_client2({.max_per_origin = 1}, {.max_streams = 1});
  begin2();
  Outcome late, waiting;
  const http::Call first = fetch(late, {.deadline = 1s}), second = fetch(waiting);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  clock_.advance(2s);
  turns();
  EXPECT_EQ(late.error(), Error::deadline);
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(heard(1).streams, ElementsAre(1u));
  EXPECT_EQ(client_.metrics().connections, 1u);
}

TEST_F(ClientHttp2Lateness, AnyFrameShowsThatServerResponds) {
  begin2();
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s});
  turns();
  peer().answer(frame(kPing, 0, 0, "01234567"));
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  const http::Call second = fetch(b);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u, 5u));
}

// The response may be late only because connecting took so long.
TEST_F(ClientHttp2Lateness, SilentConnectionNewerThanCallIsKept) {
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s});
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 1u);
  const http::Call second = fetch(b, {.deadline = 1s});
  turns();
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u));
  clock_.advance(2s);
  turns();
  EXPECT_EQ(b.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// ---- calls that are cancelled on a silent connection

class ClientHttp2Silence : public Http2PeerTest {
 protected:
  ClientHttp2Silence() { begin2(); }

  // Starts a call and cancels it after `time`. Returns whether it was sent on the first connection.
  bool cancel_after(Nanos time) {
    const std::size_t before = heard().streams.size();
    Outcome outcome;
    http::Call call = fetch(outcome);
    turns();
    clock_.advance(time);
    turns();
    call.cancel();
    turns();
    return heard().streams.size() > before;
  }
  int pings() { return heard().count[kPing]; }
  void answer_pings() {
    peer().answer(frame(kPing, 1, 0, std::string(8, '\0')));
    turns();
  }
};

TEST_F(ClientHttp2Silence, EarlyCancelSendsNoPing) {
  EXPECT_TRUE(cancel_after(999ms));
  EXPECT_EQ(heard().last_reset, 8);
  EXPECT_EQ(pings(), 0);
  clock_.advance(10s);
  turns();
  EXPECT_TRUE(cancel_after(0s));
  EXPECT_EQ(pings(), 1);
}

TEST_F(ClientHttp2Silence, UnresponsiveServerGetsNoNewCalls) {
  EXPECT_TRUE(cancel_after(1s));
  EXPECT_EQ(pings(), 1);
  EXPECT_TRUE(cancel_after(999ms));  // It may still answer.
  EXPECT_TRUE(cancel_after(1ms));
  EXPECT_EQ(pings(), 1);
  EXPECT_FALSE(cancel_after(0s));
  EXPECT_EQ(peers.size(), 2u);
  EXPECT_EQ(client_.metrics().connections, 1u);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
}

TEST_F(ClientHttp2Silence, PingReplyKeepsConnection) {
  EXPECT_TRUE(cancel_after(2s));
  EXPECT_EQ(pings(), 1);
  answer_pings();
  clock_.advance(10s);
  turns();
  EXPECT_TRUE(cancel_after(2s));
  EXPECT_EQ(pings(), 2);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientHttp2Silence, AnyFrameKeepsConnection) {
  EXPECT_TRUE(cancel_after(2s));
  peer().answer(frame(kSettings, 0, 0));
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_TRUE(cancel_after(0s));
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientHttp2Silence, ActiveCallsOfUnresponsiveServerContinue) {
  Outcome patient;
  const http::Call call = fetch(patient);
  EXPECT_TRUE(cancel_after(2s));
  clock_.advance(2s);
  turns();
  EXPECT_FALSE(cancel_after(0s));
  EXPECT_EQ(client_.metrics().connections, 2u);
  peer().answer(answer_of(3, "after all"));
  turns();
  EXPECT_EQ(patient.text(), "after all");
  EXPECT_EQ(client_.metrics().connections, 1u);
}

coro::Task<Result<std::string>> fetch_text(http::Client* client) {
  const http::Response page = co_await coro::or_return(coro::fetch(*client, "http://a.example/"));
  co_return std::string(page.text());
}
coro::Task<void> fetch_within(http::Client* client, Nanos time, std::vector<std::string>* told) {
  const Result<std::string> text = co_await coro::with_deadline(time, fetch_text(client));
  told->push_back(text ? *text : text.error() == Error::deadline ? "late" : "failed");
}

TEST_F(ClientHttp2Silence, CoroutineWithDeadlineLeavesSilentConnection) {
  std::vector<std::string> told;
  coro::Scope scope(loop_);
  for (int i = 0; i < 3; ++i) {
    scope.spawn(fetch_within(&client_, 2s, &told));
    turns();
    if (peers.size() == 2) {
      greet(peer(1));
      peer(1).answer(answer_of(1, "there"));
    }
    turns();
    clock_.advance(2s);
    turns();
  }
  EXPECT_THAT(told, ElementsAre("late", "late", "there"));
  EXPECT_EQ(client_.metrics().connections, 1u);
}

}  // namespace
}  // namespace spate::testing
