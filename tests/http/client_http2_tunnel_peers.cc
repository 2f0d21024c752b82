// Upgrades of a client over HTTP/2, to servers that are not ours, and break the protocol.
#include <chrono>
#include <string>

#include "http/client_http2_harness.h"
#include "http/tunnel_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using ::testing::ElementsAre;

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
  peer().answer(offer() + go_away(0));
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
  peer().answer(go_away(0));
  turns();
  ASSERT_EQ(peers.size(), 2u);
  greet(peer(1), offer());
  peer(1).answer(head_of(1));
  turns();
  EXPECT_THAT(here_.told, ElementsAre("upgraded talk"));
}

TEST_F(ClientTunnelPeers, TunnelContinuesAfterGoaway) {
  open();
  peer().answer(go_away(1) + frame(kData, 0, 1, "still"));
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
