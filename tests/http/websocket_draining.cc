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

TEST_F(WebSocketDraining, both_sides_say_goodbye_and_the_drain_is_done) {
  Party other;
  join(other);
  drain(30 * kSecond);
  EXPECT_FALSE(is_done);
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "closed 1001"));
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, what_was_sent_before_is_heard_before) {
  Party other;
  join(other);
  party.socket.send("last words");
  drain(30 * kSecond);
  EXPECT_FALSE(party.socket.send("too late"));
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "text last words", "closed 1001"));
}

TEST_F(WebSocketDraining, who_does_not_answer_has_its_close_timeout) {
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

TEST_F(WebSocketDraining, who_does_not_answer_has_no_more_than_the_grace) {
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

TEST_F(WebSocketDraining, one_that_is_paused_and_never_pinged_is_told_as_well) {
  options.ping_after = Nanos{0};
  Party other;
  join(other);
  party.socket.pause();
  drain(30 * kSecond);
  turns();
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, one_of_another_kind_is_told_as_well) {
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

TEST_F(WebSocketDraining, a_program_may_have_said_another_goodbye) {
  Party other;
  join(other);
  party.socket.close(CloseCode{4000}, "moved");
  drain(30 * kSecond);
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "closed 4000 moved"));
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, a_handle_that_outlives_its_connection_is_not_waited_for) {
  Party other;
  join(other);
  other.socket.close();
  turns();
  ASSERT_EQ(party.told.size(), 1u);
  drain(30 * kSecond);
  turns();
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, one_that_is_let_go_is_not_waited_for) {
  const auto client = raw();
  drain(30 * kSecond);
  turns();
  EXPECT_FALSE(is_done);
  party.socket = {};
  turns();
  EXPECT_TRUE(is_done);
}

TEST_F(WebSocketDraining, who_comes_late_is_told_503) {
  const auto client = connect();
  drain(30 * kSecond);
  client->send(std::string(kAskWebSocket) + "\r\n");
  turns();
  EXPECT_THAT(client->received, HasSubstr("HTTP/1.1 503 "));
  EXPECT_EQ(accept_error, std::errc::operation_canceled);
  EXPECT_FALSE(party.socket.is_open());
}

TEST_F(WebSocketDraining, those_of_another_server_go_on) {
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

TEST_F(WebSocketDraining, those_of_a_server_that_is_gone_go_on) {
  Party other;
  join(other);
  drain(3 * kSecond);
  server_ = {};
  turns();
  pass(10 * kSecond);
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
  EXPECT_FALSE(is_done);
}

TEST_F(WebSocketDraining, the_server_may_go_while_the_last_are_told) {
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

TEST_F(WebSocketDraining, handles_may_go_while_they_are_told) {
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
