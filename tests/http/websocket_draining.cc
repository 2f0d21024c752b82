// A server that drains, and its WebSockets.
#include <optional>

#include "http/websocket_harness.h"

namespace spate::testing {
namespace {

using http::CloseCode;
using http::WebSocketOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kGoodbye = "\x88\x02\x03\xe9";  // 1001.

class WebSocketDraining : public WebSocketTest {
 protected:
  void drain(Nanos grace) {
    server_.drain(grace, [this] { is_done = true; });
  }

  bool is_done = false;
};

TEST_F(WebSocketDraining, BothSidesCloseAndDrainEnds) {
  Party other;
  join(other);
  drain(30 * kSecond);
  EXPECT_FALSE(is_done);
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "closed 1001"));
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, EarlierMessagesAreDeliveredBeforeCloseFrame) {
  Party other;
  join(other);
  party.socket.send("last words");
  drain(30 * kSecond);
  EXPECT_FALSE(party.socket.send("too late"));
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "text last words", "closed 1001"));
}

TEST_F(WebSocketDraining, UnresponsivePeerIsClosedAfterCloseTimeout) {
  const auto client = raw();
  drain(30 * kSecond);
  turns();
  EXPECT_EQ(client->received, kGoodbye);
  pass(4 * kSecond);
  EXPECT_THAT(party.told, IsEmpty());
  pass(2 * kSecond);
  EXPECT_THAT(party.told, ElementsAre("closed 1006: not done in time"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, UnresponsivePeerIsClosedAfterGrace) {
  options.close_timeout = 60 * kSecond;
  const auto client = raw();
  drain(3 * kSecond);
  pass(2 * kSecond);
  pass(kSecond / 2);
  EXPECT_FALSE(is_done);
  pass(kSecond);
  EXPECT_EQ(party.error, Error::deadline);
  EXPECT_EQ(party.told.size(), 1u);
  EXPECT_FALSE(party.socket.is_open());
  EXPECT_TRUE(client->is_closed);
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, PausedSocketWithoutPingsIsClosedAsWell) {
  options.ping_after = Nanos{0};
  Party other;
  join(other);
  party.socket.pause();
  drain(30 * kSecond);
  turns();
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, SocketsWithOtherOptionsAreClosedAsWell) {
  Party first;
  join(first);
  Party second_here;
  accepting = &second_here;
  options.max_message = 10;
  Party second;
  join(second);
  drain(30 * kSecond);
  turns();
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_THAT(second_here.told, ElementsAre("closed 1001"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, CloseCodeOfProgramIsKept) {
  Party other;
  join(other);
  party.socket.close(CloseCode{4000}, "moved");
  drain(30 * kSecond);
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "closed 4000 moved"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, HandleOfClosedConnectionIsNotAwaited) {
  Party other;
  join(other);
  other.socket.close();
  turns();
  ASSERT_EQ(party.told.size(), 1u);
  drain(30 * kSecond);
  turns();
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, DestroyedSocketIsNotAwaited) {
  const auto client = raw();
  drain(30 * kSecond);
  turns();
  EXPECT_FALSE(is_done);
  party.socket = {};
  turns();
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, LateHandshakeIsRefusedWith503) {
  const auto client = connect();
  drain(30 * kSecond);
  client->send(std::string(kAskWebSocket) + "\r\n");
  turns();
  EXPECT_THAT(client->received, HasSubstr("HTTP/1.1 503 "));
  EXPECT_EQ(accept_error, std::errc::operation_canceled);
  EXPECT_FALSE(party.socket.is_open());
}

TEST_F(WebSocketDraining, SocketsOfAnotherServerStayOpen) {
  Party other;
  join(other);
  const http::Server first = std::exchange(server_, {});
  serve([this](http::Exchange exchange) { accept(std::move(exchange)); });
  Party here;
  accepting = &here;
  client_.close_idle();
  Party there;
  join(there);
  drain(30 * kSecond);
  turns();
  EXPECT_THAT(here.told, ElementsAre("closed 1001"));
  EXPECT_TRUE(is_done);
  EXPECT_THAT(party.told, IsEmpty());
  other.socket.send("still here");
  turns();
  EXPECT_THAT(party.told, ElementsAre("text still here"));
}

TEST_F(WebSocketDraining, SocketsOutliveTheirServer) {
  Party other;
  join(other);
  drain(3 * kSecond);
  server_ = {};
  turns();
  pass(10 * kSecond);
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_FALSE(is_done);
}

TEST_F(WebSocketDraining, ServerMayBeDestroyedInOnClosed) {
  options.close_timeout = 60 * kSecond;
  const auto first = raw();
  Party second_here;
  accepting = &second_here;
  const auto second = raw();
  const auto end_server = [this](const std::string&) { server_ = {}; };
  party.on_told = second_here.on_told = end_server;
  drain(3 * kSecond);
  pass(2 * kSecond);
  pass(2 * kSecond);
  EXPECT_EQ(party.told.size() + second_here.told.size(), 1u);
  EXPECT_FALSE(is_done);
}

TEST_F(WebSocketDraining, HandlesMayBeDestroyedInOnClosed) {
  options.close_timeout = 60 * kSecond;
  Party second_here;
  const auto first = raw();
  accepting = &second_here;
  const auto second = raw();
  party.on_told = second_here.on_told = [&](const std::string&) {
    party.socket = {};
    second_here.socket = {};
  };
  drain(3 * kSecond);
  pass(2 * kSecond);
  pass(2 * kSecond);
  EXPECT_EQ(party.told.size() + second_here.told.size(), 1u);
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace spate::testing
