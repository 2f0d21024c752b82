// A client's retries after failures, and its idle limit.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "http/client_harness.h"
#include "spate/http/date.h"
#include "spate/http/error.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";

class ClientRetries : public HttpClientTest {
 protected:
  void allow(http::RetryOptions retry) {
    make_client({.retry = retry, .on_retry = [this](const http::Retry& retry) {
                   events.push_back({retry.attempt, retry.status, retry.error, retry.delay});
                 }});
  }
  // Answers the latest request.
  void answer(std::string_view text) {
    peers.back()->answer(text);
    turns();
  }
  void wait_for_retry() { pass(events.back().delay); }
  std::string with_retry_after(std::string_view value) {
    return "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: " + std::string(value) +
           "\r\n\r\n";
  }

  struct Event {
    unsigned attempt;
    std::optional<http::Status> status;
    std::error_code error;
    Nanos delay;
  };
  std::vector<Event> events;
};

TEST_F(ClientRetries, AreOffByDefault) {
  Outcome outcome;
  ask_and_answer(outcome, kBusy);
  EXPECT_EQ(outcome.status(), 503);
  EXPECT_EQ(client_.metrics().retried, 0u);
}

TEST_F(ClientRetries, RequestIsRepeatedAfterDelayOf503) {
  allow({.attempts = 3, .first_delay = 1s});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer(kBusy);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].attempt, 1u);
  EXPECT_EQ(events[0].status, http::Status::service_unavailable);
  EXPECT_FALSE(events[0].error);
  EXPECT_LT(events[0].delay, 1s);
  EXPECT_FALSE(outcome.is_there());
  EXPECT_EQ(client_.metrics().requests, 1u);
  wait_for_retry();
  EXPECT_EQ(client_.metrics().requests, 2u);
  answer(kOk);
  EXPECT_EQ(outcome.text(), "ok");
  EXPECT_EQ(client_.metrics().retried, 1u);
}

TEST_F(ClientRetries, LastAttemptReturnsItsResponse) {
  allow({.attempts = 2});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer(kBusy);
  wait_for_retry();
  answer(kBusy);
  EXPECT_EQ(outcome.status(), 503);
  EXPECT_EQ(outcome.text(), "busy");
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(ClientRetries, CallMayChangeNumberOfAttempts) {
  allow({.attempts = 5});
  Outcome outcome;
  ask_and_answer(outcome, kBusy, {.attempts = 1});
  EXPECT_EQ(outcome.status(), 503);
}

TEST_F(ClientRetries, OnlyTemporaryStatusesAreRetried) {
  for (const int status : {429, 502, 503, 504, 400, 500, 501, 505}) {
    allow({.attempts = 2});
    events.clear();
    Outcome outcome;
    ask_and_answer(outcome,
                   "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 0\r\n\r\n");
    const bool is_temporary = status == 429 || (status >= 502 && status <= 504);
    EXPECT_EQ(events.size(), is_temporary ? 1u : 0u) << status;
    EXPECT_EQ(outcome.is_there(), !is_temporary) << status;
  }
}

TEST_F(ClientRetries, PostIsRetriedOnlyWithIdempotencyKey) {
  allow({.attempts = 2});
  Outcome plain;
  ask_and_answer(plain, kBusy, {.method = http::Method::post, .body = bytes_of("x")});
  EXPECT_EQ(plain.status(), 503);
  http::Fields key;
  ASSERT_TRUE(key.add("Idempotency-Key", "1"));
  Outcome outcome;
  const http::Call call = fetch(
      outcome, {.method = http::Method::post, .fields = std::move(key), .body = bytes_of("body")});
  turns();
  peers.back()->heard();
  answer(kBusy);
  ASSERT_EQ(events.size(), 1u);
  wait_for_retry();
  EXPECT_TRUE(peers.back()->heard().ends_with("\r\n\r\nbody"));
  answer(kOk);
  EXPECT_EQ(outcome.status(), 200);
}

TEST_F(ClientRetries, UploadThatHasBegunIsNotRetried) {
  allow({.attempts = 2});
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer, {.method = http::Method::put, .upload = http::kUnknownSize});
  EXPECT_TRUE(call.write("a"));
  turns();
  answer(kBusy);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(hearer.told.front(), "upload");
  EXPECT_NE(std::ranges::find(hearer.told, "503"), hearer.told.end());
}

TEST_F(ClientRetries, HandlerSeesOnlyLastResponse) {
  allow({.attempts = 2});
  Hearer hearer;
  const http::Call call = client_.send(kUrl, hearer);
  turns();
  answer(kBusy);
  EXPECT_TRUE(hearer.told.empty());
  wait_for_retry();
  answer(kOk);
  EXPECT_EQ(hearer.told, (std::vector<std::string>{"200", "body", "end", "closed"}));
  EXPECT_EQ(hearer.body, "ok");
}

TEST_F(ClientRetries, ResponseThatHandlerHasSeenIsNotRetried) {
  allow({.attempts = 3});
  Hearer hearer;
  const http::Call call = client_.send(kUrl, hearer);
  turns();
  answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na");
  peers.back()->stream().abort();
  turns();
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_TRUE(hearer.error);
}

TEST_F(ClientRetries, TruncatedResponseOfFetchIsRetried) {
  allow({.attempts = 2});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
  peers.back()->stream().end();
  turns();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].error, http::HttpError::response_truncated);
  wait_for_retry();
  answer(kOk);
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_F(ClientRetries, RefusedConnectionIsRetried) {
  allow({.attempts = 2});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].error, std::errc::connection_refused);
  open_error = {};
  wait_for_retry();
  answer(kOk);
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_F(ClientRetries, RetryAfterIsLeastDelay) {
  allow({.attempts = 3, .first_delay = 1ns});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer(with_retry_after("7"));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].delay, 7s);
  pass(6s);
  EXPECT_EQ(client_.metrics().requests, 1u);
  pass(1s);
  EXPECT_EQ(client_.metrics().requests, 2u);
  char date[http::kDateSize];
  const auto now = std::chrono::floor<std::chrono::seconds>(loop_.wall_now());
  answer(with_retry_after(http::format_date(now + 9s, date)));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].delay, 9s);
}

TEST_F(ClientRetries, RetryAfterBeyondLimitReturnsResponse) {
  allow({.attempts = 3, .max_retry_after = 5s});
  Outcome outcome;
  ask_and_answer(outcome, with_retry_after("6"));
  EXPECT_EQ(outcome.status(), 429);
}

TEST_F(ClientRetries, DelayBeyondDeadlineReturnsResponse) {
  allow({.attempts = 3});
  Outcome outcome;
  ask_and_answer(outcome, with_retry_after("6"), {.deadline = 6s});
  EXPECT_EQ(outcome.status(), 429);
}

TEST_F(ClientRetries, DeadlineIsThatOfAllAttempts) {
  allow({.attempts = 3, .first_delay = 1ns});
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 10s});
  turns();
  pass(6s);
  answer(kBusy);
  wait_for_retry();
  pass(4s);
  EXPECT_EQ(outcome.error(), Error::deadline);
}

TEST_F(ClientRetries, BudgetLimitsRetriesToShareOfRequests) {
  allow({.attempts = 2, .first_delay = 1ns, .budget = 0, .burst = 2});
  for (int i = 0; i < 3; ++i) {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    answer(kBusy);
    if (i < 2) wait_for_retry(), answer(kOk);
    EXPECT_EQ(outcome.status(), i < 2 ? 200 : 503);
  }
  EXPECT_EQ(client_.metrics().retried, 2u);
  EXPECT_EQ(client_.metrics().not_retried, 1u);
}

TEST_F(ClientRetries, BudgetGrowsWithCalls) {
  allow({.attempts = 2, .first_delay = 1ns, .budget = 0.5, .burst = 0});
  for (int i = 1; i <= 4; ++i) {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    answer(kBusy);
    if (i % 2 == 0) wait_for_retry(), answer(kOk);
    EXPECT_EQ(outcome.status(), i % 2 == 0 ? 200 : 503) << i;
  }
}

TEST_F(ClientRetries, DelaysGrowAndAreBounded) {
  allow({.attempts = 40, .first_delay = 100ms, .max_delay = 1s, .burst = 100});
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 0ns});
  turns();
  Nanos total{0};
  for (int i = 0; i < 39; ++i) {
    answer(kBusy);
    ASSERT_EQ(events.size(), static_cast<std::size_t>(i + 1));
    EXPECT_LE(events.back().delay, std::min<Nanos>(100ms * (1 << std::min(i, 10)), 1s));
    total += events.back().delay;
    wait_for_retry();
  }
  EXPECT_GT(total, 5s);  // Full jitter: half a second on average.
  answer(kBusy);
  EXPECT_EQ(outcome.status(), 503);
}

TEST_F(ClientRetries, CallMayBeCancelledDuringDelay) {
  allow({.attempts = 2, .first_delay = 1s});
  Outcome outcome;
  {
    const http::Call call = fetch(outcome);
    turns();
    answer(kBusy);
    ASSERT_EQ(events.size(), 1u);
  }
  pass(2s);
  EXPECT_EQ(client_.metrics().requests, 1u);
  EXPECT_EQ(client_.metrics().calls, 0u);
}

TEST_F(ClientRetries, HookMayDestroyClient) {
  make_client({.retry = {.attempts = 2}, .on_retry = [this](const http::Retry&) { client_ = {}; }});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer(kBusy);
  pass(20s);
  EXPECT_FALSE(outcome.is_there());
  EXPECT_FALSE(call.is_open());
}

// ---- the idle limit

class ClientIdleLimit : public HttpClientTest {};

TEST_F(ClientIdleLimit, SilentServerEndsCall) {
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 0ns, .idle_timeout = 5s});
  turns();
  pass(4s);
  peer().answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  turns();
  pass(4s);
  peer().answer("a");
  turns();
  pass(4s);
  EXPECT_FALSE(outcome.is_there());
  pass(1s);
  EXPECT_EQ(outcome.error(), Error::idle_timeout);
}

TEST_F(ClientIdleLimit, PausedCallIsNotIdle) {
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.deadline = 0ns, .idle_timeout = 5s});
  turns();
  call.pause();
  pass(30s);
  EXPECT_TRUE(hearer.told.empty());
  call.resume();
  pass(4s);
  EXPECT_TRUE(hearer.told.empty());
  pass(1s);
  EXPECT_EQ(hearer.error, Error::idle_timeout);
}

TEST_F(ClientIdleLimit, ResumeWithoutPauseIsNoProgress) {
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.deadline = 0ns, .idle_timeout = 5s});
  turns();
  pass(4s);
  call.resume();
  pass(1s);
  EXPECT_EQ(hearer.error, Error::idle_timeout);
}

TEST_F(ClientIdleLimit, UploadThatWaitsForWriteIsNotIdle) {
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer,
                   {.method = http::Method::put, .upload = 2, .deadline = 0ns, .idle_timeout = 5s});
  turns();
  pass(30s);
  EXPECT_EQ(hearer.told, (std::vector<std::string>{"upload"}));
  EXPECT_TRUE(call.write("ab"));
  turns();
  for (int i = 0; i < 3; ++i) pass(5s);
  EXPECT_EQ(hearer.error, Error::idle_timeout);
}

TEST_F(ClientIdleLimit, WaitingForConnectionIsNotIdle) {
  make_client({.max_per_origin = 1});
  Outcome first, second;
  const http::Call busy = fetch(first, {.deadline = 0ns});
  turns();
  const http::Call waiting = fetch(second, {.deadline = 0ns, .idle_timeout = 5s});
  pass(30s);
  EXPECT_FALSE(second.is_there());
  peer().answer(kOk);
  turns();
  pass(5s);
  EXPECT_EQ(second.error(), Error::idle_timeout);
}

}  // namespace
}  // namespace spate::testing
