// Calls that are cancelled, and clients that are destroyed, in every callback; and deadlines.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/client_pair_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::Status;

class ClientLifetime : public ClientProtocolTest {
 protected:
  // Runs an upload and its response, and calls `what` in the callback `when`.
  std::vector<std::string> run(const std::string& when, const std::function<void()>& what) {
    kept_.clear();
    begin();
    on_request = [this](Exchange exchange) {
      if (exchange.request().method() == http::Method::get) return void(exchange.respond("ok"));
      kept_.push_back(std::make_unique<Kept>(std::move(exchange)));
      if (is_early_) respond();
    };
    hearer_ = std::make_unique<Hearer>();
    std::vector<std::string> told;
    hearer_->on_told = [&](const std::string& event) {
      if (event != "drained" || !is_early_) told.push_back(event);
      if (event == when) what();
    };
    call_ = client_.send(kUrl, *hearer_, {.method = http::Method::post, .upload = 600'000});
    call_.write(std::string(600'000, 'x'));
    turns(300);
    if (!is_early_ && !kept_.empty()) respond();
    turns(300);
    return told;
  }
  void respond() {
    Exchange& exchange = kept_.back()->exchange;
    exchange.inform(http::Status::early_hints);
    exchange.begin(http::Status::ok);
    exchange.write("abc");
    exchange.end();
  }
  // Whether on_drained() is called for an upload that was answered early is not specified.
  std::vector<std::string> all() const {
    if (is_early_) return {"upload", "103", "200", "body", "end", "closed"};
    return {"upload", "drained", "103", "200", "body", "end", "closed"};
  }
  std::vector<std::string> until(const std::string& when) const {
    std::vector<std::string> some = all();
    some.erase(std::find(some.begin(), some.end(), when) + 1, some.end());
    return some;
  }
  void for_each_callback(const std::function<void(const std::string& when)>& test) {
    for (const bool is_early : {false, true}) {
      is_early_ = is_early;
      for (const std::string& when : all()) {
        SCOPED_TRACE(when + (is_early ? ", early" : ""));
        test(when);
      }
    }
  }

  bool is_early_ = false;  // The server responds before it has received the upload.
  std::unique_ptr<Hearer> hearer_;
  http::Call call_;
};

TEST_P(ClientLifetime, CallMayBeCancelledInEveryCallback) {
  for_each_callback([this](const std::string& when) {
    EXPECT_EQ(run(when, [this] { call_.cancel(); }), until(when));
    EXPECT_FALSE(call_.is_open());
    EXPECT_EQ(client_.metrics().calls, 0u);
  });
}

TEST_P(ClientLifetime, HandlerMayBeDestroyedWithItsCallInEveryCallback) {
  for_each_callback([this](const std::string& when) {
    const auto destroy = [this] {
      call_ = {};
      const auto gone = std::move(hearer_);
    };
    EXPECT_EQ(run(when, destroy), until(when));
  });
}

TEST_P(ClientLifetime, ClientMayBeDestroyedInEveryCallback) {
  for_each_callback([this](const std::string& when) {
    EXPECT_EQ(run(when, [this] { client_ = {}; }), until(when));
    EXPECT_FALSE(call_.is_open());
    EXPECT_FALSE(call_.write("x"));
    EXPECT_FALSE(call_.is_full());
    call_.resume();
  });
}

TEST_P(ClientLifetime, NewCallMayBeMadeInEveryCallback) {
  for_each_callback([this](const std::string& when) {
    Outcome second;
    http::Call another;
    EXPECT_EQ(run(when, [&] { another = fetch(second); }), all());
    EXPECT_EQ(second.status(), 200);
  });
}

TEST_P(ClientLifetime, LoopMayBeRunInEveryCallback) {
  for_each_callback(
      [this](const std::string& when) { EXPECT_EQ(run(when, [this] { turns(3); }), all()); });
}

TEST_P(ClientLifetime, PauseAndResumeInEveryCallbackLosesNothing) {
  for_each_callback([this](const std::string& when) {
    const auto pause_and_resume = [this] {
      call_.pause();
      turns(3);
      call_.resume();
    };
    EXPECT_EQ(run(when, pause_and_resume), all());
    EXPECT_EQ(hearer_->body, "abc");
  });
}

TEST_P(ClientLifetime, ClientMayBeDestroyedWhenFetchCompletes) {
  int times = 0;
  const http::Call call = client_.fetch(kUrl, [&](Result<http::Response> response) {
    ++times;
    client_ = {};
    EXPECT_EQ(response->text(), "ok");
  });
  turns();
  answer();
  EXPECT_EQ(times, 1);
  EXPECT_FALSE(call.is_open());
}

TEST_P(ClientLifetime, ClientMayBeDestroyedWhenErrorIsReported) {
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

TEST_P(ClientLifetime, ClientMayBeDestroyedAtDeadline) {
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

TEST_P(ClientLifetime, WaitingCallsAreNotNotifiedOfClientDestruction) {
  make_client({.max_per_origin = 1});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome second;
  const http::Call first = client_.fetch(kUrl, [&](Result<http::Response>) { client_ = {}; });
  const http::Call other = fetch(second);
  turns();
  EXPECT_FALSE(second.is_there());
}

TEST_P(ClientLifetime, CancelledCallIsResetAtServer) {
  Outcome outcome;
  http::Call call = fetch(outcome);
  turns();
  call.cancel();
  turns();
  EXPECT_TRUE(kept_.back()->is_closed);
  EXPECT_EQ(kept_.back()->error, std::errc::connection_reset);
  EXPECT_FALSE(outcome.is_there());
}

TEST_P(ClientLifetime, CallIsMovable) {
  Outcome outcome;
  http::Call first = fetch(outcome);
  http::Call second = std::move(first);
  EXPECT_FALSE(first.is_open());
  EXPECT_TRUE(second.is_open());
  first = std::move(second);
  turns();
  answer();
  EXPECT_EQ(outcome.status(), 200);
}

TEST_P(ClientLifetime, CallMayOutliveItsClientAndItsLoop) {
  Outcome outcome;
  http::Call call = fetch(outcome), paused = fetch(outcome);
  turns();
  paused.pause();
  kept_.clear();
  server_ = {};
  owned_.reset();
  EXPECT_FALSE(call.is_open());
  call = {};
  client_ = {};
  EXPECT_FALSE(paused.is_open());
  EXPECT_FALSE(outcome.is_there());
}

TEST_P(ClientLifetime, IdleConnectionMayOutliveLoop) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  answer();
  ASSERT_EQ(client_.metrics().idle, 1u);
  kept_.clear();
  server_ = {};
  owned_.reset();
  client_ = {};
}

// ---- deadlines

TEST_P(ClientLifetime, DeadlineEndsCallInEachPhase) {
  const std::vector<std::function<void(Exchange&)>> phases{
      [](Exchange&) {},
      [](Exchange& exchange) { exchange.inform(Status::early_hints); },
      [](Exchange& exchange) { exchange.begin(Status::ok, {}, 5); },
      [](Exchange& exchange) {
        exchange.begin(Status::ok, {}, 5);
        exchange.write("hell");
      },
      [](Exchange& exchange) {
        exchange.respond(Status::found, fields_of({{"Location", "/"}}), Bytes());
      },
  };
  for (const auto& phase : phases) {
    SCOPED_TRACE(&phase - phases.data());
    Outcome outcome;
    const http::Call call = fetch(outcome, {.deadline = 10s, .max_redirects = 5});
    turns();
    pass(6s);
    phase(kept_.back()->exchange);
    turns();
    EXPECT_FALSE(outcome.is_there());
    pass(3900ms);
    EXPECT_FALSE(outcome.is_there());
    pass(200ms);
    EXPECT_EQ(outcome.error(), Error::deadline);
    EXPECT_TRUE(kept_.back()->is_closed);
  }
}

TEST_P(ClientLifetime, DeadlineEndsCallBeforeItHasConnection) {
  Outcome outcome;
  const http::Call call = fetch(outcome, {.deadline = 1ns});
  clock_.advance(1s);
  loop_.run(Run::no_wait);
  turns();
  EXPECT_EQ(outcome.error(), Error::deadline);
}

TEST_P(ClientLifetime, DeadlineAppliesWhileCallIsPaused) {
  Outcome outcome;
  http::Call call = fetch(outcome, {.deadline = 1s});
  turns();
  call.pause();
  pass(2s);
  EXPECT_EQ(outcome.error(), Error::deadline);
}

TEST_P(ClientLifetime, CallHasDefaultDeadlineOfThirtySeconds) {
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

TEST(HttpErrors, HaveMessages) {
  for (int value = 1; value <= static_cast<int>(http::HttpError::not_upgraded); ++value) {
    const std::error_code error = static_cast<http::HttpError>(value);
    EXPECT_STREQ(error.category().name(), "spate.http");
    EXPECT_NE(error.message(), "unknown error");
  }
  EXPECT_EQ(std::error_code(static_cast<http::HttpError>(0)).message(), "unknown error");
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientLifetime, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
