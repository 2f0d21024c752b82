// Calls that are cancelled, and clients that are destroyed, in every callback; and deadlines.
#include <chrono>
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ClientLifetime : public HttpClientTest {
 protected:
  static constexpr std::string_view kChunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";

  // Runs an upload and its response, and calls `what` in the callback `when`.
  std::vector<std::string> run(const std::string& when, const std::function<void()>& what) {
    peers.clear();
    make_client();
    hearer_ = std::make_unique<Hearer>();
    std::vector<std::string> told;
    hearer_->on_told = [&](const std::string& event) {
      told.push_back(event);
      if (event == when) what();
    };
    call_ = client_.send(kUrl, *hearer_, {.method = http::Method::post, .upload = 300'000});
    call_.write(std::string(300'000, 'x'));
    turns();
    if (!peers.empty()) {
      peers.front()->answer(kChunked);
      turns();
    }
    return told;
  }
  static std::vector<std::string> until(const std::string& when) {
    std::vector<std::string> all{"upload", "drained", "200", "body", "end", "closed"};
    all.erase(std::find(all.begin(), all.end(), when) + 1, all.end());
    return all;
  }
  static std::vector<std::string> all() {
    return {"upload", "drained", "200", "body", "end", "closed"};
  }

  std::unique_ptr<Hearer> hearer_;
  http::Call call_;
};

TEST_F(ClientLifetime, CallMayBeCancelledInEveryCallback) {
  for (const std::string& when : all()) {
    EXPECT_EQ(run(when, [this] { call_.cancel(); }), until(when));
    EXPECT_FALSE(call_.is_open());
    EXPECT_EQ(client_.metrics().calls, 0u);
  }
}

TEST_F(ClientLifetime, HandlerMayBeDestroyedWithItsCallInEveryCallback) {
  for (const std::string& when : all()) {
    EXPECT_EQ(run(when,
                  [this] {
                    call_ = {};
                    const auto gone = std::move(hearer_);
                  }),
              until(when));
  }
}

TEST_F(ClientLifetime, ClientMayBeDestroyedInEveryCallback) {
  for (const std::string& when : all()) {
    EXPECT_EQ(run(when, [this] { client_ = {}; }), until(when));
    EXPECT_FALSE(call_.is_open());
    EXPECT_FALSE(call_.write("x"));
    EXPECT_FALSE(call_.is_full());
    call_.resume();
  }
}

TEST_F(ClientLifetime, NewCallMayBeMadeInEveryCallback) {
  for (const std::string& when : all()) {
    Outcome second;
    http::Call another;
    EXPECT_EQ(run(when, [&] { another = fetch(second); }), all());
    for (const auto& asked : peers) {
      if (asked->received.find("GET /") != std::string::npos) asked->answer(kOk);
    }
    turns();
    EXPECT_EQ(second.status(), 200) << when;
  }
}

TEST_F(ClientLifetime, LoopMayBeRunInEveryCallback) {
  for (const std::string& when : all()) EXPECT_EQ(run(when, [this] { turns(3); }), all());
}

TEST_F(ClientLifetime, PauseAndResumeInEveryCallbackLosesNothing) {
  for (const std::string& when : all()) {
    EXPECT_EQ(run(when,
                  [this] {
                    call_.pause();
                    turns(3);
                    call_.resume();
                  }),
              all());
    EXPECT_EQ(hearer_->body, "abc");
  }
}

TEST_F(ClientLifetime, ClientMayBeDestroyedWhenFetchCompletes) {
  int times = 0;
  const http::Call call = client_.fetch(kUrl, [&](Result<http::Response> response) {
    ++times;
    client_ = {};
    EXPECT_EQ(response->text(), "ok");
  });
  turns();
  peer().answer(kOk);
  turns();
  EXPECT_EQ(times, 1);
  EXPECT_FALSE(call.is_open());
}

TEST_F(ClientLifetime, ClientMayBeDestroyedWhenErrorIsReported) {
  for (const std::string_view url : {"", "http://a.example/"}) {
    make_client();
    open_error = std::make_error_code(std::errc::connection_refused);
    int times = 0;
    http::Call call;
    call = client_.fetch(url, [&](Result<http::Response>) {
      ++times;
      client_ = {};
      call = {};
    });
    turns();
    EXPECT_EQ(times, 1);
  }
}

TEST_F(ClientLifetime, ClientMayBeDestroyedAtDeadline) {
  Outcome outcome;
  int times = 0;
  const http::Call call = client_.fetch(kUrl,
                                        [&](Result<http::Response> response) {
                                          ++times;
                                          EXPECT_EQ(response.error(), Error::deadline);
                                          client_ = {};
                                        },
                                        {.deadline = 1s});
  turns();
  pass(2s);
  EXPECT_EQ(times, 1);
}

TEST_F(ClientLifetime, WaitingCallsAreNotNotifiedOfClientDestruction) {
  make_client({.max_per_origin = 1});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome second;
  const http::Call first = client_.fetch(kUrl, [&](Result<http::Response>) { client_ = {}; });
  const http::Call other = fetch(second);
  turns();
  EXPECT_FALSE(second.is_there());
}

TEST_F(ClientLifetime, CancelledCallResetsItsConnection) {
  Outcome outcome;
  http::Call call = fetch(outcome);
  turns();
  call.cancel();
  turns();
  EXPECT_TRUE(peer().is_closed);
  EXPECT_EQ(peer().error, std::errc::connection_reset);
  EXPECT_FALSE(outcome.is_there());
}

TEST_F(ClientLifetime, CallIsMovable) {
  Outcome outcome;
  http::Call first = fetch(outcome);
  http::Call second = std::move(first);
  EXPECT_FALSE(first.is_open());
  EXPECT_TRUE(second.is_open());
  first = std::move(second);
  turns();
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome.status(), 200);
}

TEST_F(ClientLifetime, CallMayOutliveItsClientAndItsLoop) {
  Outcome outcome;
  http::Call call = fetch(outcome), paused = fetch(outcome);
  turns();
  paused.pause();
  peers.clear();
  owned_.reset();
  EXPECT_FALSE(call.is_open());
  call = {};
  client_ = {};
  EXPECT_FALSE(paused.is_open());
  EXPECT_FALSE(outcome.is_there());
}

TEST_F(ClientLifetime, IdleConnectionMayOutliveLoop) {
  warm_up();
  peers.clear();
  owned_.reset();
  client_ = {};
}

// ---- deadlines

TEST_F(ClientLifetime, DeadlineEndsCallInEachPhase) {
  const std::vector<std::string_view> phases{
      "",                                                                // Without an answer.
      "HTTP/1.1 103 Early Hints\r\n\r\n",                                // Before its head,
      "HTTP/1.1 200 OK\r\nContent-Le",                                   // in it,
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",                    // before its body,
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",                // in it,
      "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",  // of a redirect.
  };
  for (const std::string_view phase : phases) {
    Outcome outcome;
    const http::Call call = fetch(outcome, {.deadline = 10s, .max_redirects = 5});
    turns();
    pass(6s);
    peers.back()->answer(phase);
    turns();
    EXPECT_FALSE(outcome.is_there());
    pass(3900ms);
    EXPECT_FALSE(outcome.is_there());
    pass(200ms);
    EXPECT_EQ(outcome.error(), Error::deadline) << phase;
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientLifetime, DeadlineEndsCallBeforeItHasConnection) {
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 1ns});
  clock_.advance(1s);
  loop_.run(Run::no_wait);
  turns();
  EXPECT_EQ(outcome.error(), Error::deadline);
}

TEST_F(ClientLifetime, DeadlineAppliesWhileCallIsPaused) {
  Outcome outcome;
  http::Call call = fetch(outcome, {.deadline = 1s});
  turns();
  call.pause();
  pass(2s);
  EXPECT_EQ(outcome.error(), Error::deadline);
}

TEST_F(ClientLifetime, CallHasDefaultDeadlineOfThirtySeconds) {
  Outcome outcome, endless;
  const http::Call call = fetch(outcome), another = fetch(endless, {.deadline = Nanos{0}});
  turns();
  pass(29900ms);
  EXPECT_FALSE(outcome.is_there());
  pass(200ms);
  EXPECT_EQ(outcome.error(), Error::deadline);
  pass(3600s);
  EXPECT_FALSE(endless.is_there());
}

TEST_F(ClientLifetime, ErrorsHaveMessages) {
  for (int value = 1; value <= static_cast<int>(http::HttpError::not_upgraded); ++value) {
    const std::error_code error = static_cast<http::HttpError>(value);
    EXPECT_STREQ(error.category().name(), "spate.http");
    EXPECT_NE(error.message(), "unknown error");
  }
  EXPECT_EQ(std::error_code(static_cast<http::HttpError>(0)).message(), "unknown error");
}

}  // namespace
}  // namespace spate::testing
