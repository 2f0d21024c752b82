// Upgrades of the client: the connection, or a stream of HTTP/2, becomes a tunnel.
#include <chrono>
#include <string>
#include <vector>

#include "http/tunnel_harness.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::Status;
using ::testing::ElementsAre;

class ClientUpgrade : public TunnelPairTest, public ::testing::WithParamInterface<HttpProtocol> {
 protected:
  ClientUpgrade() : TunnelPairTest(GetParam()) {}

  // The tunnel has ended, and a connection of HTTP/2 can be closed when it is idle.
  void expect_over() { EXPECT_EQ(client_.metrics().idle, is_http2() ? 1u : 0u); }
};

TEST_P(ClientUpgrade, RequestAsksForProtocol) {
  std::string seen;
  on_request = [&](Exchange exchange) {
    seen = head_text(exchange.request());
    there_ = std::make_unique<TunnelEnd>(must(exchange.upgrade("talk")));
  };
  ask({.fields = fields_of({{"X", "y"}}), .upgrade = "talk"});
  turns();
  EXPECT_THAT(seen, ::testing::StartsWith("GET /talk?now\nhost: a.example\n"));
  EXPECT_THAT(seen, ::testing::HasSubstr("upgrade: talk\n"));
  EXPECT_THAT(seen, ::testing::HasSubstr("x: y\n"));
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
  EXPECT_FALSE(call_.is_open());
  EXPECT_TRUE(call_.was_sent());
  EXPECT_EQ(client_.metrics().calls, 0u);
  EXPECT_EQ(client_.metrics().idle, 0u);
  EXPECT_EQ(client_.metrics().requests, 1u);
}

TEST_P(ClientUpgrade, ResponseIsReportedAs101) {
  struct Seen final : http::CallHandler {
    void on_response(const http::Response&) override { ++responses; }
    void on_upgraded(const http::Response& response, Stream) override {
      status = response.status();
      version = response.version();
      more = response["x-more"];
    }
    void on_closed(std::error_code) override { ++closed; }
    int responses = 0;
    int closed = 0;
    Status status{};
    http::Version version{};
    std::string more;
  } seen;
  on_request = [&](Exchange exchange) {
    auto stream = exchange.upgrade("talk", fields_of({{"X-More", "yes"}}));
    there_ = std::make_unique<TunnelEnd>(must(std::move(stream)));
  };
  const http::Call call = client_.send(kUrl, seen, {.upgrade = "talk"});
  turns();
  EXPECT_EQ(seen.status, Status::switching_protocols);
  EXPECT_EQ(seen.version, is_http2() ? http::Version::http_2 : http::Version::http_1_1);
  EXPECT_EQ(seen.more, "yes");
  EXPECT_EQ(seen.responses + seen.closed, 0);
}

TEST_P(ClientUpgrade, DataFlowsBothWaysAlongsideCalls) {
  open();
  mine_->stream.write("there");
  there_->stream.write("back");
  expect_well();
  EXPECT_EQ(there_->recorder.received, "there");
  EXPECT_EQ(mine_->recorder.received, "back");
  mine_->stream.write(" again");
  there_->stream.write(" again");
  expect_well();
  EXPECT_EQ(there_->recorder.received, "there again");
  EXPECT_EQ(mine_->recorder.received, "back again");
}

TEST_P(ClientUpgrade, EarlyDataIsDeliveredAfterStart) {
  here_.on_told = {};
  ask();
  turns();
  there_->stream.write("early");
  there_->stream.end();
  turns();
  ASSERT_TRUE(here_.stream.is_open());
  mine_ = std::make_unique<TunnelEnd>(std::move(here_.stream));
  turns();
  EXPECT_EQ(mine_->recorder.received, "early");
  EXPECT_EQ(mine_->recorder.log, "end ");
}

TEST_P(ClientUpgrade, PausedCallHandsOverReadingStream) {
  here_.on_told = {};
  ask();
  call_.pause();
  turns();
  call_.resume();
  turns();
  ASSERT_THAT(here_.told, ElementsAre("upgraded talk"));
  EXPECT_FALSE(here_.stream.is_paused());
}

// ---- endings

TEST_P(ClientUpgrade, EachSideEndsIndependently) {
  open();
  mine_->stream.write("last");
  mine_->stream.end();
  turns();
  EXPECT_EQ(there_->recorder.received, "last");
  EXPECT_EQ(there_->recorder.log, "end ");
  EXPECT_EQ(mine_->recorder.log, "");
  there_->stream.write("theirs");
  there_->stream.end();
  turns();
  EXPECT_EQ(mine_->recorder.received, "theirs");
  EXPECT_EQ(mine_->recorder.closed_calls, 1);
  EXPECT_FALSE(mine_->recorder.error);
  EXPECT_EQ(there_->recorder.closed_calls, 1);
  EXPECT_FALSE(there_->recorder.error);
  expect_over();
  expect_well();
}

TEST_P(ClientUpgrade, ServerSideMayEndFirst) {
  open();
  there_->stream.write("first");
  there_->stream.end();
  turns();
  EXPECT_EQ(mine_->recorder.received, "first");
  EXPECT_EQ(mine_->recorder.log, "end ");
  mine_->stream.write("still");
  mine_->stream.end();
  turns();
  EXPECT_EQ(there_->recorder.received, "still");
  EXPECT_FALSE(mine_->recorder.error);
  EXPECT_EQ(mine_->recorder.closed_calls, 1);
  expect_well();
}

TEST_P(ClientUpgrade, EitherSideMayResetTunnel) {
  open();
  mine_->stream.abort();
  turns();
  EXPECT_EQ(there_->recorder.error, std::errc::connection_reset);
  expect_well();
  open();
  there_->stream.abort();
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
  expect_well();
  EXPECT_EQ(client_.metrics().idle, 1u);
}

// Either side may have ended its direction before.
TEST_P(ClientUpgrade, TunnelMayBeResetAfterHalfClose) {
  for (const int which : {0, 1, 2, 3}) {
    SCOPED_TRACE(which);
    open();
    TunnelEnd& ended = which % 2 == 0 ? *mine_ : *there_;
    TunnelEnd& reset = which < 2 ? *mine_ : *there_;
    TunnelEnd& told = which < 2 ? *there_ : *mine_;
    ended.stream.end();
    turns();
    reset.stream.abort();
    turns();
    EXPECT_EQ(told.recorder.error, std::errc::connection_reset);
    EXPECT_EQ(told.recorder.closed_calls, 1);
    expect_over();
  }
}

TEST_P(ClientUpgrade, TunnelsEndWithLoop) {
  open();
  const std::unique_ptr<TunnelEnd> mine = std::move(mine_), there = std::move(there_);
  owned_.reset();
  EXPECT_LE(mine->recorder.closed_calls, 1);
  EXPECT_FALSE(mine->stream.is_open());
}

TEST_P(ClientUpgrade, ClosedTunnelSendsQueuedData) {
  open();
  mine_->stream.write("bye");
  mine_.reset();
  turns();
  EXPECT_EQ(there_->recorder.received, "bye");
  EXPECT_EQ(there_->recorder.log, "end ");
  there_.reset();
  turns();
  expect_over();
  expect_well();
}

TEST_P(ClientUpgrade, UnclaimedTunnelIsClosed) {
  here_.on_told = [this](const std::string&) { here_.stream = {}; };
  ask();
  turns();
  ASSERT_NE(there_, nullptr);
  EXPECT_EQ(there_->recorder.log, "end ");
  there_.reset();
  turns();
  expect_over();
}

TEST_P(ClientUpgrade, HalfClosedTunnelContinuesToReceive) {
  open();
  mine_->stream.end();
  for (int i = 0; i < 200; ++i) {
    there_->stream.write("x");
    pass(1s);
  }
  EXPECT_EQ(mine_->recorder.received.size(), 200u);
  EXPECT_EQ(mine_->recorder.closed_calls, 0);
}

TEST_P(ClientUpgrade, TunnelsHaveNoIdleTimeout) {
  open();
  for (int i = 0; i < 300; ++i) pass(1s);
  mine_->stream.write("awake");
  turns();
  EXPECT_EQ(there_->recorder.received, "awake");
}

TEST_P(ClientUpgrade, BackPressureStopsServer) {
  open();
  mine_->stream.pause();
  const std::string much(4'000'000, 'x');
  there_->stream.write(much);
  turns(300);
  EXPECT_GT(there_->stream.queued(), 2'000'000u);
  expect_well();
  mine_->stream.resume();
  turns(3000);
  EXPECT_EQ(mine_->recorder.received, much);
}

TEST_P(ClientUpgrade, BackPressureStopsClient) {
  open();
  there_->stream.pause();
  const std::string much(4'000'000, 'y');
  mine_->stream.write(much);
  turns(300);
  EXPECT_GT(mine_->stream.queued(), 2'000'000u);
  expect_well();
  there_->stream.resume();
  turns(3000);
  EXPECT_EQ(there_->recorder.received, much);
}

// ---- upgrades that do not happen

TEST_P(ClientUpgrade, RefusedTunnelKeepsConnection) {
  on_request = [](Exchange exchange) { exchange.respond(Status::forbidden, "no"); };
  ask();
  turns();
  EXPECT_THAT(here_.told, ElementsAre("403", "body", "end", "closed"));
  EXPECT_FALSE(here_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
  on_request = say_hello;
  expect_well();
}

TEST_P(ClientUpgrade, RedirectedTunnelIsRequestedElsewhere) {
  on_request = [this](Exchange exchange) {
    if (exchange.request().path() == "/talk") {
      exchange.respond(Status::found, fields_of({{"Location", "/other"}}));
    } else {
      there_ = std::make_unique<TunnelEnd>(must(exchange.upgrade("talk")));
    }
  };
  ask({.upgrade = "talk", .max_redirects = 1});
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
}

TEST_P(ClientUpgrade, UnansweredTunnelReachesItsDeadline) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  ask({.upgrade = "talk", .deadline = 5s});
  turns();
  pass(6s);
  EXPECT_EQ(here_.error, Error::deadline);
  kept.clear();
  turns();
  on_request = say_hello;
  expect_well();
}

TEST_P(ClientUpgrade, CancelledTunnelIsResetAtServer) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  ask();
  turns();
  call_ = {};
  turns();
  EXPECT_FALSE(kept.at(0).is_open());
  expect_over();
}

TEST_P(ClientUpgrade, RequiresValidProtocolNoBodyAndHandler) {
  const auto refused = [this](http::CallOptions options) {
    ask(std::move(options));
    turns();
    return here_.error;
  };
  for (const char* wrong : {"two words", "a,b", "a/", "/b", "a/b/c", "a\r\nb"})
    EXPECT_EQ(refused({.upgrade = wrong}), std::errc::invalid_argument) << wrong;
  EXPECT_EQ(refused({.body = bytes_of("x"), .upgrade = "a"}), std::errc::invalid_argument);
  EXPECT_EQ(refused({.upload = 1, .upgrade = "a"}), std::errc::invalid_argument);
  EXPECT_EQ(refused({.upgrade = "a", .accept_trailers = true}), std::errc::invalid_argument);
  Outcome outcome;
  const http::Call call = fetch(outcome, {.upgrade = "a"});
  turns();
  EXPECT_EQ(outcome.error(), std::errc::invalid_argument);
}

class ClientUpgradeRandom : public ClientUpgrade {
 protected:
  struct Side {
    TunnelEnd* end;
    std::string sent{};
    bool has_ended = false;
  };

  // Writes, ends, pauses or resets at random. Returns false after a reset.
  bool act(Random& random, Side& side, int step) {
    Stream& stream = side.end->stream;
    const std::string piece(random.below(random.below(10) == 0 ? 100'000 : 300), char(step));
    switch (random.below(6)) {
      case 0:
      case 1:
        if (!side.has_ended && stream.write(piece)) side.sent += piece;
        return true;
      case 2:
        random.below(2) == 0 ? stream.pause() : stream.resume();
        return true;
      case 3:
        turns(static_cast<int>(random.below(5)));
        return true;
      case 4:
        if (random.below(10) == 0 && !std::exchange(side.has_ended, true)) stream.end();
        return true;
      default:
        if (random.below(20) != 0) return true;
        stream.abort();
        return false;
    }
  }
};

// The received bytes are a prefix of the sent ones, and all of them if neither side was reset.
TEST_P(ClientUpgradeRandom, TunnelsLoseNoData) {
  for (const std::uint64_t seed : seeds(200)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    mine_.reset();
    there_.reset();
    pass(1s);  // Many resets at once would be a flood.
    open();
    Side sides[] = {{.end = mine_.get()}, {.end = there_.get()}};
    bool is_reset = false;
    for (int step = 0; step < 60 && !is_reset; ++step)
      is_reset = !act(random, sides[random.below(2)], step);
    for (Side& side : sides) {
      side.end->stream.resume();
      if (!is_reset && !side.has_ended) side.end->stream.end();
    }
    turns(1000);
    EXPECT_TRUE(sides[0].sent.starts_with(there_->recorder.received));
    EXPECT_TRUE(sides[1].sent.starts_with(mine_->recorder.received));
    expect_over();
    if (is_reset) continue;
    EXPECT_EQ(there_->recorder.received.size(), sides[0].sent.size());
    EXPECT_EQ(mine_->recorder.received.size(), sides[1].sent.size());
    EXPECT_FALSE(mine_->recorder.error) << mine_->recorder.error.message();
    EXPECT_FALSE(there_->recorder.error);
  }
  if (is_http2()) EXPECT_EQ(opened.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientUpgradeRandom, kProtocols, name_of_protocol);
INSTANTIATE_TEST_SUITE_P(Protocols, ClientUpgrade, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
