// Upgrades of a client over HTTP/2 (RFC 8441): tunnels to our server, and to servers that break the
// protocol.
#include <chrono>
#include <string>
#include <vector>

#include "http/client_http2_harness.h"
#include "streams/harness.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::HttpError;
using http::Status;
using ::testing::ElementsAre;

// The end of a tunnel, once it is open.
struct TunnelEnd {
  explicit TunnelEnd(Stream given) : stream(std::move(given)) {
    stream.set_half_open(true);
    stream.start(recorder);
  }
  Recorder recorder;
  Stream stream;
};

class ClientTunnels : public Http2PairTest {
 protected:
  ClientTunnels() {
    on_request = [this](Exchange exchange) {
      if (exchange.request()[http::FieldId::upgrade].empty()) return answer(std::move(exchange));
      Result<Stream> stream = exchange.upgrade("talk");
      if (stream) there_ = std::make_unique<TunnelEnd>(std::move(*stream));
    };
    here_.on_told = [this](const std::string& what) {
      if (what.starts_with("upgraded"))
        mine_ = std::make_unique<TunnelEnd>(std::move(here_.stream));
    };
  }

  static void answer(Exchange exchange) { exchange.respond("hello\n"); }
  void ask(http::CallOptions options = {.upgrade = "talk"}) {
    call_ = client_.send("http://a.example/talk?now", here_, std::move(options));
  }
  void open() {
    ask();
    turns();
    ASSERT_NE(mine_, nullptr) << here_.error.message();
    ASSERT_NE(there_, nullptr);
  }
  void pass(Nanos time) {
    clock_.advance(time);
    turns(10);
  }
  // The connection still carries other calls.
  void expect_well() {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    EXPECT_EQ(outcome.text(), "hello\n");
    EXPECT_EQ(opened.size(), 1u);
  }

  Hearer here_;
  http::Call call_;
  std::unique_ptr<TunnelEnd> mine_;
  std::unique_ptr<TunnelEnd> there_;
};

TEST_F(ClientTunnels, RequestLooksLikeHttp1Upgrade) {
  std::string seen;
  on_request = [&](Exchange exchange) {
    const http::Request& request = exchange.request();
    seen = std::string(request.method_name()) + " " + std::string(request.target()) + " " +
           std::string(request.host()) + " " + std::string(request[http::FieldId::upgrade]) + " " +
           std::string(request["x"]) + std::string(request[http::FieldId::sec_websocket_key]);
    EXPECT_EQ(request.version(), http::Version::http_2);
    there_ = std::make_unique<TunnelEnd>(must(exchange.upgrade("talk")));
  };
  ask({.fields = fields_of({{"x", "y"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}),
       .upgrade = "talk"});
  turns();
  EXPECT_EQ(seen, "GET /talk?now a.example talk y");
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
  EXPECT_FALSE(call_.is_open());
  EXPECT_TRUE(call_.was_sent());
  EXPECT_EQ(client_.metrics().calls, 0u);
  EXPECT_EQ(client_.metrics().connections, 1u);
  EXPECT_EQ(client_.metrics().idle, 0u);
  EXPECT_EQ(client_.metrics().requests, 1u);
}

TEST_F(ClientTunnels, TunnelResponseIsReportedAs101) {
  struct Seen final : http::CallHandler {
    void on_response(const http::Response&) override { ++responses; }
    void on_upgraded(const http::Response& response, Stream) override {
      status = response.status();
      version = response.version();
      said = response["x-more"];
    }
    void on_closed(std::error_code) override { ++closed; }
    int responses = 0;
    int closed = 0;
    Status status{};
    http::Version version{};
    std::string said;
  } seen;
  on_request = [&](Exchange exchange) {
    auto stream = exchange.upgrade("talk", fields_of({{"X-More", "yes"}}));
    there_ = std::make_unique<TunnelEnd>(must(std::move(stream)));
  };
  const http::Call call = client_.send("http://a.example/", seen, {.upgrade = "talk"});
  turns();
  EXPECT_EQ(seen.status, Status::switching_protocols);
  EXPECT_EQ(seen.version, http::Version::http_2);
  EXPECT_EQ(seen.said, "yes");
  EXPECT_EQ(seen.responses + seen.closed, 0);
}

TEST_F(ClientTunnels, TunnelsCarryDataBothWaysAlongsideCalls) {
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

TEST_F(ClientTunnels, ManyTunnelsMayBeOpenAtOnce) {
  std::vector<std::unique_ptr<TunnelEnd>> servers;
  on_request = [&](Exchange exchange) {
    servers.push_back(std::make_unique<TunnelEnd>(must(exchange.upgrade("talk"))));
    TunnelEnd& end = *servers.back();
    end.recorder.use = [&end](Bytes bytes) { return end.stream.write(bytes), bytes.size(); };
  };
  begin({}, {}, {.max_streams = 10});
  std::vector<std::unique_ptr<Hearer>> hearers;
  std::vector<http::Call> calls;
  for (int i = 0; i < 25; ++i) {
    hearers.push_back(std::make_unique<Hearer>());
    calls.push_back(client_.send("http://a.example/", *hearers.back(), {.upgrade = "talk"}));
  }
  turns(200);
  EXPECT_EQ(opened.size(), 3u);
  std::vector<std::unique_ptr<TunnelEnd>> mine;
  for (const auto& hearer : hearers) {
    ASSERT_THAT(hearer->told, ElementsAre("upgraded talk"));
    mine.push_back(std::make_unique<TunnelEnd>(std::move(hearer->stream)));
    mine.back()->stream.write("number " + std::to_string(mine.size()));
  }
  turns();
  for (std::size_t i = 0; i < mine.size(); ++i)
    EXPECT_EQ(mine[i]->recorder.received, "number " + std::to_string(i + 1));
  mine.clear();
  servers.clear();
  turns();
  EXPECT_EQ(client_.metrics().idle, 3u);
}

TEST_F(ClientTunnels, EachSideEndsIndependently) {
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
  EXPECT_EQ(client_.metrics().idle, 1u);
  expect_well();
}

TEST_F(ClientTunnels, ServerSideMayEndFirst) {
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

TEST_F(ClientTunnels, EitherSideMayResetTunnel) {
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
TEST_F(ClientTunnels, TunnelMayBeResetAfterHalfClose) {
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
    EXPECT_EQ(client_.metrics().idle, 1u);
  }
}

TEST_F(ClientTunnels, DestroyedClientResetsTunnels) {
  open();
  client_ = {};
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(there_->recorder.error, std::errc::connection_reset);
}

TEST_F(ClientTunnels, DestroyedServerResetsTunnels) {
  open();
  server_ = {};
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientTunnels, TunnelsEndWithLoop) {
  open();
  const std::unique_ptr<TunnelEnd> mine = std::move(mine_), there = std::move(there_);
  owned_.reset();
  EXPECT_LE(mine->recorder.closed_calls, 1);
  EXPECT_FALSE(mine->stream.is_open());
}

TEST_F(ClientTunnels, ClosedTunnelSendsQueuedData) {
  open();
  mine_->stream.write("bye");
  mine_.reset();
  turns();
  EXPECT_EQ(there_->recorder.received, "bye");
  EXPECT_EQ(there_->recorder.log, "end ");
  there_.reset();
  turns();
  EXPECT_EQ(client_.metrics().idle, 1u);
  expect_well();
}

TEST_F(ClientTunnels, UnclaimedTunnelIsClosed) {
  here_.on_told = [this](const std::string&) { here_.stream = {}; };
  ask();
  turns();
  ASSERT_NE(there_, nullptr);
  EXPECT_EQ(there_->recorder.log, "end ");
  there_.reset();
  turns();
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnels, ReleasedTunnelTimesOutWaitingForPeer) {
  open();
  mine_.reset();
  turns();
  EXPECT_EQ(there_->recorder.closed_calls, 0);
  EXPECT_EQ(client_.metrics().idle, 0u);
  for (int i = 0; i < 62; ++i) pass(1s);
  EXPECT_EQ(client_.metrics().idle, 1u);
  expect_well();
}

TEST_F(ClientTunnels, TunnelsHaveNoIdleTimeout) {
  open();
  for (int i = 0; i < 300; ++i) pass(1s);
  mine_->stream.write("awake");
  turns();
  EXPECT_EQ(there_->recorder.received, "awake");
}

TEST_F(ClientTunnels, HalfClosedTunnelContinuesToReceive) {
  open();
  mine_->stream.end();
  for (int i = 0; i < 200; ++i) {
    there_->stream.write("x");
    pass(1s);
  }
  EXPECT_EQ(mine_->recorder.received.size(), 200u);
  EXPECT_EQ(mine_->recorder.closed_calls, 0);
}

TEST_F(ClientTunnels, BackPressureStopsServer) {
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

TEST_F(ClientTunnels, BackPressureStopsClient) {
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

// A 2xx response would mean that the server has agreed.
TEST_F(ClientTunnels, ServerWithoutTunnelsRespondsNotImplemented) {
  on_request = answer;
  ask();
  turns();
  EXPECT_THAT(here_.told, ElementsAre("501", "body", "end", "closed"));
  EXPECT_EQ(here_.body, "hello\n");
}

TEST_F(ClientTunnels, RefusedTunnelKeepsConnection) {
  on_request = [](Exchange exchange) { exchange.respond(Status::forbidden, "no"); };
  ask();
  turns();
  EXPECT_THAT(here_.told, ElementsAre("403", "body", "end", "closed"));
  EXPECT_FALSE(here_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
  on_request = answer;
  expect_well();
}

TEST_F(ClientTunnels, RedirectedTunnelIsRequestedElsewhere) {
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

TEST_F(ClientTunnels, TunnelsOfDrainingServerContinue) {
  open();
  bool is_drained = false;
  server_.drain(100s, [&] { is_drained = true; });
  turns();
  mine_->stream.write("still");
  turns();
  EXPECT_EQ(there_->recorder.received, "still");
  mine_->stream.end();
  there_->stream.end();
  turns();
  EXPECT_TRUE(is_drained);
  EXPECT_FALSE(mine_->recorder.error);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientTunnels, UnansweredTunnelReachesItsDeadline) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  ask({.upgrade = "talk", .deadline = 5s});
  turns();
  pass(6s);
  EXPECT_EQ(here_.error, Error::deadline);
  kept.clear();
  turns();
  on_request = answer;
  expect_well();
}

TEST_F(ClientTunnels, CancelledTunnelResetsItsStream) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  ask();
  turns();
  call_ = {};
  turns();
  EXPECT_FALSE(kept.at(0).is_open());
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnels, EverythingMayBeDestroyedInCallbacks) {
  here_.on_told = [&](const std::string&) {
    call_ = {};
    client_ = {};
  };
  ask();
  turns();
  mine_ = std::make_unique<TunnelEnd>(std::move(here_.stream));
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
}

TEST_F(ClientTunnels, ClientMayBeDestroyedInEachTunnelCallback) {
  for (int when = 0; when < 3; ++when) {
    SCOPED_TRACE(when);
    begin({}, {});
    open();
    const auto destroy = [this] { client_ = {}; };
    if (when == 0) mine_->recorder.use = [&](Bytes bytes) { return destroy(), bytes.size(); };
    if (when == 1) mine_->recorder.when_ended = destroy;
    if (when == 2) mine_->recorder.when_closed = destroy;
    there_->stream.write("x");
    there_->stream.end();
    turns();
    mine_->stream.end();
    turns();
    EXPECT_EQ(mine_->recorder.closed_calls, 1);
    mine_.reset();
    there_.reset();
  }
}

// Each side writes, ends, pauses and resets at random. The received bytes are a prefix of the sent
// ones, and all of them if neither side was reset.
TEST_F(ClientTunnels, TunnelsLoseNoData) {
  for (const std::uint64_t seed : seeds(200)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    mine_.reset();
    there_.reset();
    pass(1s);  // Many resets at once would be a flood.
    open();
    TunnelEnd* const ends[] = {mine_.get(), there_.get()};
    std::string sent[2];
    bool has_ended[2] = {false, false};
    bool is_reset = false;
    for (int step = 0; step < 60 && !is_reset; ++step) {
      const std::size_t side = random.below(2);
      TunnelEnd& end = *ends[side];
      const std::string piece(random.below(random.below(10) == 0 ? 100'000 : 300), char(step));
      switch (random.below(6)) {
        case 0:
        case 1:
          if (!has_ended[side] && end.stream.write(piece)) sent[side] += piece;
          break;
        case 2:
          random.below(2) == 0 ? end.stream.pause() : end.stream.resume();
          break;
        case 3:
          turns(static_cast<int>(random.below(5)));
          break;
        case 4:
          if (random.below(10) != 0) break;
          if (!std::exchange(has_ended[side], true)) end.stream.end();
          break;
        default:
          if (random.below(20) != 0) break;
          is_reset = true;
          end.stream.abort();
      }
    }
    for (std::size_t side = 0; side < 2; ++side) {
      ends[side]->stream.resume();
      if (!is_reset && !has_ended[side]) ends[side]->stream.end();
    }
    turns(1000);
    EXPECT_TRUE(sent[0].starts_with(there_->recorder.received));
    EXPECT_TRUE(sent[1].starts_with(mine_->recorder.received));
    EXPECT_EQ(client_.metrics().idle, 1u);
    if (is_reset) continue;
    EXPECT_EQ(there_->recorder.received.size(), sent[0].size());
    EXPECT_EQ(mine_->recorder.received.size(), sent[1].size());
    EXPECT_FALSE(mine_->recorder.error) << mine_->recorder.error.message();
    EXPECT_FALSE(there_->recorder.error);
  }
  EXPECT_EQ(opened.size(), 1u);
}

// ---- servers that are not ours

class ClientTunnelPeers : public Http2PeerTest {
 protected:
  ClientTunnelPeers() {
    here_.on_told = [this](const std::string& what) {
      if (what.starts_with("upgraded"))
        mine_ = std::make_unique<TunnelEnd>(std::move(here_.stream));
    };
  }
  static std::string offer(std::uint32_t value = 1) { return setting(8, value); }
  void ask(http::CallOptions options = {.upgrade = "talk"}) {
    call_ = client_.send(kUrl, here_, std::move(options));
    turns();
  }
  void open() {
    ask();
    greet(peer(), offer());
    peer().answer(head_of(1));
    turns();
    ASSERT_NE(mine_, nullptr);
  }
  static std::string reset_of(std::uint32_t stream, std::uint32_t code) {
    return frame(kReset, 0, stream, number(code));
  }

  Hearer here_;
  http::Call call_;
  std::unique_ptr<TunnelEnd> mine_;
};

TEST_F(ClientTunnelPeers, TunnelWaitsForServerSettings) {
  ask();
  Outcome outcome;
  const http::Call other = fetch(outcome);
  turns();
  EXPECT_THAT(heard().streams, ElementsAre(1u));  // That of the other call.
  EXPECT_FALSE(call_.was_sent());
  greet(peer(), offer());
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u));
  EXPECT_TRUE(call_.was_sent());
  peer().answer(head_of(3) + answer_of(1));
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_F(ClientTunnelPeers, UnsupportedTunnelIsError) {
  for (const std::string& settings : {frame(kSettings, 0, 0), offer(0)}) {
    SCOPED_TRACE(settings.size());
    const std::size_t index = peers.size();
    make_client2();
    here_.told.clear();
    ask();
    greet(peer(index), settings);
    EXPECT_THAT(here_.told, ElementsAre("closed"));
    EXPECT_EQ(here_.error, HttpError::not_upgraded);
    EXPECT_FALSE(call_.was_sent());
    EXPECT_THAT(heard(index).streams, ElementsAre());
    EXPECT_EQ(client_.metrics().idle, 1u);
    here_.told.clear();
    ask();  // The client remembers the server's setting.
    EXPECT_EQ(here_.error, HttpError::not_upgraded);
    EXPECT_EQ(peers.size(), index + 1);
  }
}

TEST_F(ClientTunnelPeers, TunnelSupportMayBeAnnouncedLater) {
  ask();
  greet(peer());
  EXPECT_EQ(here_.error, HttpError::not_upgraded);
  peer().answer(offer());
  turns();
  here_.told.clear();
  ask();
  peer().answer(head_of(1));
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
}

TEST_F(ClientTunnelPeers, WaitingTunnelMayBeCancelled) {
  ask();
  call_ = {};
  greet(peer(), offer());
  EXPECT_THAT(heard().streams, ElementsAre());
  EXPECT_EQ(heard().last_reset, -1);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnelPeers, WaitingTunnelHasDeadline) {
  ask({.upgrade = "talk", .deadline = 5s});
  pass(6s);
  EXPECT_EQ(here_.error, Error::deadline);
  EXPECT_FALSE(call_.was_sent());
}

TEST_F(ClientTunnelPeers, WaitingTunnelFailsWithItsConnection) {
  ask();
  peer().stream().end();
  turns();
  EXPECT_EQ(here_.error, std::errc::connection_reset);
  EXPECT_FALSE(call_.was_sent());
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientTunnelPeers, ClientMayBeDestroyedWhileTunnelWaits) {
  ask();
  client_ = {};
  turns();
  EXPECT_THAT(here_.told, ElementsAre());
}

TEST_F(ClientTunnelPeers, TunnelIsRetriedElsewhereAfterImmediateGoaway) {
  ask();
  peer().answer(offer() + frame(kGoAway, 0, 0, number(0) + number(0)));
  turns();
  ASSERT_EQ(peers.size(), 2u);
  greet(peer(1), offer());
  peer(1).answer(head_of(1));
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
}

TEST_F(ClientTunnelPeers, RefusedTunnelIsRetried) {
  ask();
  greet(peer(), offer());
  peer().answer(reset_of(1, 7));
  turns();
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u));
  peer().answer(head_of(3));
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
}

TEST_F(ClientTunnelPeers, TunnelRejectedByGoawayIsRetriedElsewhere) {
  ask();
  greet(peer(), offer());
  peer().answer(frame(kGoAway, 0, 0, number(0) + number(0)));
  turns();
  ASSERT_EQ(peers.size(), 2u);
  greet(peer(1), offer());
  peer(1).answer(head_of(1));
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
}

TEST_F(ClientTunnelPeers, TunnelContinuesAfterGoaway) {
  open();
  peer().answer(frame(kGoAway, 0, 0, number(1) + number(0)) + frame(kData, 0, 1, "still"));
  turns();
  EXPECT_EQ(mine_->recorder.received, "still");
  EXPECT_EQ(mine_->recorder.closed_calls, 0);
  mine_->stream.end();
  peer().answer(frame(kData, kEndStream, 1));
  turns();
  EXPECT_FALSE(mine_->recorder.error);
  EXPECT_EQ(mine_->recorder.closed_calls, 1);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientTunnelPeers, DataArrivingWithHeaderSectionIsDelivered) {
  ask();
  greet(peer(), offer());
  peer().answer(head_of(1) + frame(kData, 0, 1, "early") + frame(kData, kEndStream, 1, " end"));
  turns();
  ASSERT_NE(mine_, nullptr);
  EXPECT_EQ(mine_->recorder.received, "early end");
  EXPECT_EQ(mine_->recorder.log, "end ");
}

TEST_F(ClientTunnelPeers, TunnelMayEndWithItsHeaderSection) {
  ask();
  greet(peer(), offer());
  peer().answer(frame(kHeaders, kEndHeaders | kEndStream, 1, kHead200));
  turns();
  ASSERT_NE(mine_, nullptr);
  EXPECT_EQ(mine_->recorder.log, "end ");
  mine_->stream.end();
  turns();
  EXPECT_FALSE(mine_->recorder.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnelPeers, InformationalResponsesAreReported) {
  ask();
  greet(peer(), offer());
  peer().answer(head_of(1, field(":status", "103")));
  peer().answer(head_of(1, field(":status", "202")));  // As good as 200.
  turns();
  EXPECT_THAT(here_.told, ElementsAre("103", "upgraded talk"));
}

TEST_F(ClientTunnelPeers, TrailersEndTunnel) {
  open();
  peer().answer(frame(kHeaders, kEndHeaders | kEndStream, 1, field("x", "y")));
  turns();
  EXPECT_EQ(mine_->recorder.log, "end ");
}

TEST_F(ClientTunnelPeers, FinishedTunnelKeepsItsReceivedData) {
  open();
  mine_->stream.pause();
  peer().answer(frame(kData, kEndStream, 1, "last words") + reset_of(1, 0));
  turns();
  mine_->stream.resume();
  turns();
  EXPECT_EQ(mine_->recorder.received, "last words");
  EXPECT_TRUE(mine_->recorder.log.starts_with("end ")) << mine_->recorder.log;
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnelPeers, TunnelResetIsReported) {
  open();
  peer().answer(reset_of(1, 8));
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnelPeers, TunnelIsResetWhenConnectionIsReset) {
  open();
  peer().stream().abort();
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientTunnelPeers, TunnelIsResetWhenConnectionReachesEof) {
  open();
  peer().stream().end();
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
}

TEST_F(ClientTunnelPeers, AbortedTunnelSendsResetCancel) {
  open();
  mine_->stream.abort();
  turns();
  EXPECT_EQ(heard().last_reset, 8);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientTunnelPeers, WindowUpdatesCoverOnlyReadData) {
  make_client2({}, {.stream_window = 10'000});
  open();
  mine_->stream.pause();
  const std::string part(5000, 'x');
  const int before = heard().count[kWindow];
  for (int i = 0; i < 2; ++i) peer().answer(frame(kData, 0, 1, part));
  turns();
  EXPECT_LE(heard().count[kWindow], before + 2);
  mine_->stream.resume();
  turns();
  EXPECT_EQ(mine_->recorder.received.size(), 10'000u);
}

TEST_F(ClientTunnelPeers, TunnelWritesWaitForWindow) {
  ask();
  greet(peer(), offer() + setting(4, 0));
  peer().answer(head_of(1));
  turns();
  mine_->stream.write("0123456789");
  turns();
  EXPECT_EQ(heard().body, 0u);
  peer().answer(frame(kWindow, 0, 1, number(4)));
  turns();
  EXPECT_EQ(heard().body, 4u);
  for (int i = 0; i < 62; ++i) pass(1s);  // No more comes.
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(heard().last_reset, 8);
}

TEST_F(ClientTunnelPeers, MalformedTunnelIsRefused) {
  const std::string bad[] = {
      head_of(1, field(":status", "101")),
      head_of(1, std::string(kHead200) + field("connection", "upgrade")),
      head_of(1, std::string(kHead200) + field("Upgrade", "talk")),
      head_of(1, field(":status", "204")),  // No bytes may follow.
      head_of(1, field(":status", "051")),
      frame(kData, 0, 1, "before the head"),
      frame(kHeaders, kEndHeaders | kEndStream, 1, field(":status", "103")),
  };
  for (const std::string& each : bad) {
    SCOPED_TRACE(&each - bad);
    const std::size_t index = peers.size();
    make_client2();
    ask();
    greet(peer(index), offer());
    peer(index).answer(each);
    turns();
    EXPECT_EQ(here_.error, HttpError::malformed_response);
    EXPECT_EQ(mine_, nullptr);
  }
}

// The session does not check the length, since the stream might have become a tunnel.
TEST_F(ClientTunnelPeers, ErrorResponseMustMatchItsContentLength) {
  const std::string head = field(":status", "403") + field("content-length", "5");
  const auto body = [](std::string_view text) { return frame(kData, kEndStream, 1, text); };
  const struct {
    std::string answer;
    std::error_code error;
  } cases[] = {
      {head_of(1, head) + body("12345"), {}},
      {head_of(1, head) + frame(kData, 0, 1, "123") + body("45"), {}},
      {head_of(1, head) + body("1234"), HttpError::response_truncated},
      {head_of(1, head) + body("123456"), HttpError::malformed_response},
      {frame(kHeaders, kEndHeaders | kEndStream, 1, head), HttpError::response_truncated},
      {head_of(1, field(":status", "403") + field("content-length", "0")) + body("1"),
       HttpError::malformed_response},
      {head_of(1, field(":status", "403")) + body("12345"), {}},
      {head_of(1, field(":status", "304") + field("content-length", "5")) + body(""), {}},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(&each - cases);
    const std::size_t index = peers.size();
    make_client2();
    here_.error = {};
    ask();
    greet(peer(index), offer());
    peer(index).answer(each.answer);
    turns();
    EXPECT_EQ(here_.error, each.error);
    EXPECT_EQ(here_.told.back(), "closed");
    EXPECT_EQ(client_.metrics().connections, 1u);
  }
}

TEST_F(ClientTunnelPeers, TunnelWithTooLongHeaderSectionIsRefused) {
  std::string head(kHead200);
  for (int i = 0; i < 100; ++i) head += field("x", std::string(100, 'y'));
  make_client2({.max_head = 8192});
  ask();
  greet(peer(), offer());
  peer().answer(head_of(1, head));
  turns();
  EXPECT_EQ(here_.error, HttpError::malformed_response);
}

TEST_F(ClientTunnelPeers, DataBeyondWindowResetsTunnel) {
  make_client2({}, {.stream_window = 1024});
  open();
  mine_->stream.pause();
  for (int i = 0; i < 10; ++i) peer().answer(frame(kData, 0, 1, std::string(1000, 'x')));
  turns();
  EXPECT_EQ(heard().last_reset, 3);
  mine_->stream.resume();
  turns();
  EXPECT_EQ(mine_->recorder.error, std::errc::connection_reset);
}

TEST_F(ClientTunnelPeers, UpgradeWithAnotherMethodUsesHttp1) {
  ask({.method = http::Method::post, .upgrade = "talk"});
  EXPECT_TRUE(peer().received.starts_with("POST / HTTP/1.1\r\n")) << peer().received;
}

}  // namespace
}  // namespace spate::testing
