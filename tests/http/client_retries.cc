// A client's retries after failures, and its idle limit.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "http/client_pair_harness.h"
#include "spate/http/date.h"
#include "spate/http/error.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Status;

class ClientRetries : public ClientProtocolTest {
 protected:
  void allow(http::RetryOptions retry) {
    make_client({.retry = retry, .on_retry = [this](const http::Retry& retry) {
                   events.push_back({retry.attempt, retry.status, retry.error, retry.delay});
                 }});
  }
  void answer_busy() { answer(Status::service_unavailable, "busy"); }
  // Resets the response after a part of its body.
  void answer_in_part() {
    http::Exchange& exchange = kept_.back()->exchange;
    exchange.begin(Status::ok, {}, 5);
    exchange.write("ab");
    turns();
    exchange.abort();
    turns();
  }
  void wait_for_retry() { pass(events.back().delay); }
  void answer_slow_down(std::string_view retry_after) {
    answer(Status::too_many_requests, "", fields_of({{"Retry-After", retry_after}}));
  }

  struct Event {
    unsigned attempt;
    std::optional<Status> status;
    std::error_code error;
    Nanos delay;
  };
  std::vector<Event> events;
};

TEST_P(ClientRetries, AreOffByDefault) {
  Outcome outcome;
  ask_and_answer(outcome, {}, Status::service_unavailable);
  EXPECT_EQ(outcome.status(), 503);
  EXPECT_EQ(client_.metrics().retried, 0u);
}

TEST_P(ClientRetries, RequestIsRepeatedAfterDelayOf503) {
  allow({.attempts = 3, .first_delay = 1s});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer_busy();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].attempt, 1u);
  EXPECT_EQ(events[0].status, Status::service_unavailable);
  EXPECT_FALSE(events[0].error);
  EXPECT_LT(events[0].delay, 1s);
  EXPECT_FALSE(outcome.is_there());
  EXPECT_EQ(client_.metrics().requests, 1u);
  wait_for_retry();
  EXPECT_EQ(client_.metrics().requests, 2u);
  answer();
  EXPECT_EQ(outcome.text(), "ok");
  EXPECT_EQ(client_.metrics().retried, 1u);
}

TEST_P(ClientRetries, LastAttemptReturnsItsResponse) {
  allow({.attempts = 2});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer_busy();
  wait_for_retry();
  answer_busy();
  EXPECT_EQ(outcome.status(), 503);
  EXPECT_EQ(outcome.text(), "busy");
  EXPECT_EQ(events.size(), 1u);
}

TEST_P(ClientRetries, CallMayChangeNumberOfAttempts) {
  allow({.attempts = 5});
  Outcome outcome;
  ask_and_answer(outcome, {.attempts = 1}, Status::service_unavailable);
  EXPECT_EQ(outcome.status(), 503);
}

TEST_P(ClientRetries, OnlyTemporaryStatusesAreRetried) {
  for (const int status : {429, 502, 503, 504, 400, 500, 501, 505}) {
    allow({.attempts = 2});
    events.clear();
    Outcome outcome;
    ask_and_answer(outcome, {}, static_cast<Status>(status));
    const bool is_temporary = status == 429 || (status >= 502 && status <= 504);
    EXPECT_EQ(events.size(), is_temporary ? 1u : 0u) << status;
    EXPECT_EQ(outcome.is_there(), !is_temporary) << status;
  }
}

TEST_P(ClientRetries, PostIsRetriedOnlyWithIdempotencyKey) {
  allow({.attempts = 2});
  Outcome plain;
  ask_and_answer(plain, {.method = http::Method::post, .body = bytes_of("x")},
                 Status::service_unavailable);
  EXPECT_EQ(plain.status(), 503);
  http::Fields key;
  ASSERT_TRUE(key.add("Idempotency-Key", "1"));
  Outcome outcome;
  const http::Call call = fetch(
      outcome, {.method = http::Method::post, .fields = std::move(key), .body = bytes_of("body")});
  turns();
  answer_busy();
  ASSERT_EQ(events.size(), 1u);
  wait_for_retry();
  EXPECT_EQ(kept_.back()->body, "body");
  answer();
  EXPECT_EQ(outcome.status(), 200);
}

TEST_P(ClientRetries, UploadThatHasBegunIsNotRetried) {
  allow({.attempts = 2});
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer, {.method = http::Method::put, .upload = http::kUnknownSize});
  EXPECT_TRUE(call.write("a"));
  turns();
  answer_busy();
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(hearer.told.front(), "upload");
  EXPECT_NE(std::ranges::find(hearer.told, "503"), hearer.told.end());
}

TEST_P(ClientRetries, HandlerSeesOnlyLastResponse) {
  allow({.attempts = 2});
  Hearer hearer;
  const http::Call call = client_.send(kUrl, hearer);
  turns();
  answer_busy();
  EXPECT_TRUE(hearer.told.empty());
  wait_for_retry();
  answer();
  EXPECT_EQ(hearer.told, (std::vector<std::string>{"200", "body", "end", "closed"}));
  EXPECT_EQ(hearer.body, "ok");
}

TEST_P(ClientRetries, ResponseThatHandlerHasSeenIsNotRetried) {
  allow({.attempts = 3});
  Hearer hearer;
  const http::Call call = client_.send(kUrl, hearer);
  turns();
  answer_in_part();
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_TRUE(hearer.error);
}

TEST_P(ClientRetries, ResetResponseOfFetchIsRetried) {
  allow({.attempts = 2});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer_in_part();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].error, std::errc::connection_reset);
  wait_for_retry();
  answer();
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_P(ClientRetries, RefusedConnectionIsRetried) {
  allow({.attempts = 2});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].error, std::errc::connection_refused);
  open_error = {};
  wait_for_retry();
  answer();
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_P(ClientRetries, RetryAfterIsLeastDelay) {
  allow({.attempts = 3, .first_delay = 1ns});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer_slow_down("7");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].delay, 7s);
  pass(6s);
  EXPECT_EQ(client_.metrics().requests, 1u);
  pass(1s);
  EXPECT_EQ(client_.metrics().requests, 2u);
  char date[http::kDateSize];
  const auto now = std::chrono::floor<std::chrono::seconds>(loop_.wall_now());
  answer_slow_down(http::format_date(now + 9s, date));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].delay, 9s);
}

TEST_P(ClientRetries, RetryAfterBeyondLimitReturnsResponse) {
  allow({.attempts = 3, .max_retry_after = 5s});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer_slow_down("6");
  EXPECT_EQ(outcome.status(), 429);
}

TEST_P(ClientRetries, DelayBeyondDeadlineReturnsResponse) {
  allow({.attempts = 3});
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 6s});
  turns();
  answer_slow_down("6");
  EXPECT_EQ(outcome.status(), 429);
}

TEST_P(ClientRetries, DeadlineIsThatOfAllAttempts) {
  allow({.attempts = 3, .first_delay = 1ns});
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 10s});
  turns();
  pass(6s);
  answer_busy();
  wait_for_retry();
  pass(4s);
  EXPECT_EQ(outcome.error(), Error::deadline);
}

TEST_P(ClientRetries, BudgetLimitsRetriesToShareOfRequests) {
  allow({.attempts = 2, .first_delay = 1ns, .budget = 0, .burst = 2});
  for (int i = 0; i < 3; ++i) {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    answer_busy();
    if (i < 2) wait_for_retry(), answer();
    EXPECT_EQ(outcome.status(), i < 2 ? 200 : 503);
  }
  EXPECT_EQ(client_.metrics().retried, 2u);
  EXPECT_EQ(client_.metrics().not_retried, 1u);
}

TEST_P(ClientRetries, BudgetGrowsWithCalls) {
  allow({.attempts = 2, .first_delay = 1ns, .budget = 0.5, .burst = 0});
  for (int i = 1; i <= 4; ++i) {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    answer_busy();
    if (i % 2 == 0) wait_for_retry(), answer();
    EXPECT_EQ(outcome.status(), i % 2 == 0 ? 200 : 503) << i;
  }
}

TEST_P(ClientRetries, DelaysGrowAndAreBounded) {
  allow({.attempts = 40, .first_delay = 100ms, .max_delay = 1s, .burst = 100});
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 0ns});
  turns();
  Nanos total{0};
  for (int i = 0; i < 39; ++i) {
    answer_busy();
    ASSERT_EQ(events.size(), static_cast<std::size_t>(i + 1));
    EXPECT_LE(events.back().delay, std::min<Nanos>(100ms * (1 << std::min(i, 10)), 1s));
    total += events.back().delay;
    wait_for_retry();
  }
  EXPECT_GT(total, 5s);  // Full jitter: half a second on average.
  answer_busy();
  EXPECT_EQ(outcome.status(), 503);
}

TEST_P(ClientRetries, CallMayBeCancelledDuringDelay) {
  allow({.attempts = 2, .first_delay = 1s});
  Outcome outcome;
  {
    const http::Call call = fetch(outcome);
    turns();
    answer_busy();
    ASSERT_EQ(events.size(), 1u);
  }
  pass(2s);
  EXPECT_EQ(client_.metrics().requests, 1u);
  EXPECT_EQ(client_.metrics().calls, 0u);
}

TEST_P(ClientRetries, HookMayDestroyClient) {
  make_client({.retry = {.attempts = 2}, .on_retry = [this](const http::Retry&) { client_ = {}; }});
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer_busy();
  pass(20s);
  EXPECT_FALSE(outcome.is_there());
  EXPECT_FALSE(call.is_open());
}

// ---- the idle limit

class ClientIdleLimit : public ClientProtocolTest {};

TEST_P(ClientIdleLimit, SilentServerEndsCall) {
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 0ns, .idle_timeout = 5s});
  turns();
  pass(4s);
  http::Exchange& exchange = kept_.back()->exchange;
  exchange.begin(Status::ok, {}, 3);
  turns();
  pass(4s);
  exchange.write("a");
  turns();
  pass(4s);
  EXPECT_FALSE(outcome.is_there());
  pass(1s);
  EXPECT_EQ(outcome.error(), Error::idle_timeout);
}

TEST_P(ClientIdleLimit, PausedCallIsNotIdle) {
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

TEST_P(ClientIdleLimit, ResumeWithoutPauseIsNoProgress) {
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.deadline = 0ns, .idle_timeout = 5s});
  turns();
  pass(4s);
  call.resume();
  pass(1s);
  EXPECT_EQ(hearer.error, Error::idle_timeout);
}

TEST_P(ClientIdleLimit, UploadThatWaitsForWriteIsNotIdle) {
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

TEST_P(ClientIdleLimit, WaitingForConnectionIsNotIdle) {
  make_client({.max_per_origin = 1}, {.max_streams = 1});
  Outcome first, second;
  const http::Call busy = fetch(first, {.deadline = 0ns});
  turns();
  const http::Call waiting = fetch(second, {.deadline = 0ns, .idle_timeout = 5s});
  pass(30s);
  EXPECT_FALSE(second.is_there());
  answer();
  pass(5s);
  EXPECT_EQ(second.error(), Error::idle_timeout);
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientRetries, kProtocols, name_of_protocol);
INSTANTIATE_TEST_SUITE_P(Protocols, ClientIdleLimit, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
