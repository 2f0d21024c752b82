// WebSockets, as a server and as a client.
#include <chrono>
#include <string>

#include "http/websocket_harness.h"
#include "spate/http/topic.h"

using namespace std::chrono_literals;

namespace spate::testing {
namespace {

using http::CloseCode;
using http::MessageKind;
using http::MessageView;
using http::Topic;
using http::WebSocket;
using http::WebSocketCompression;
using http::WebSocketOptions;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class WebSockets : public WebSocketTest {};

// ---- close() and abort(), in each state

class WebSocketEndings : public WebSocketTest {
 protected:
  void begin_connecting(Party& there) {
    there.socket = must(WebSocket::connect(client_, "ws://a/chat", there));
  }
};

TEST_F(WebSocketEndings, CloseWhileConnectingCancelsHandshake) {
  Party there;
  begin_connecting(there);
  there.socket.close(CloseCode::normal, "changed my mind");
  EXPECT_THAT(there.told, IsEmpty());  // Not from inside the call.
  EXPECT_TRUE(there.socket.is_open());
  there.socket.close();
  turns();
  EXPECT_THAT(there.told, ElementsAre("closed 1006: Operation canceled"));
  EXPECT_EQ(there.error, std::errc::operation_canceled);
  EXPECT_FALSE(there.socket.is_open());
  turns();
  EXPECT_EQ(there.told.size(), 1u);
}

TEST_F(WebSocketEndings, AbortWhileConnectingCallsNoHandler) {
  Party there;
  begin_connecting(there);
  there.socket.abort();
  turns();
  EXPECT_THAT(there.told, IsEmpty());
  EXPECT_FALSE(there.socket.is_open());
}

TEST_F(WebSocketEndings, AbortAfterCloseWhileConnectingCallsNoHandler) {
  Party there;
  begin_connecting(there);
  there.socket.close();
  there.socket.abort();
  turns();
  EXPECT_THAT(there.told, IsEmpty());
}

TEST_F(WebSocketEndings, DestructionAfterCloseWhileConnectingCallsNoHandler) {
  Party there;
  begin_connecting(there);
  there.socket.close();
  there.socket = WebSocket();
  turns();
  EXPECT_THAT(there.told, IsEmpty());
}

TEST_F(WebSocketEndings, CloseInOnOpenEndsNormally) {
  Party there;
  there.on_told = [&](const std::string& what) {
    if (what == "open") there.socket.close(CloseCode::normal, "bye");
  };
  join(there);
  EXPECT_THAT(there.told, ElementsAre("open", "closed 1000"));
  EXPECT_THAT(party.told, ElementsAre("closed 1000 bye"));
}

TEST_F(WebSocketEndings, CloseAgainDoesNothing) {
  Party there;
  join(there);
  there.socket.close(CloseCode::normal, "first");
  there.socket.close(CloseCode::going_away, "second");
  turns();
  EXPECT_THAT(party.told, ElementsAre("closed 1000 first"));
}

TEST_F(WebSocketEndings, CloseAfterPeerClosedDoesNothing) {
  Party there;
  join(there);
  party.socket.close(CloseCode::going_away);
  there.on_told = [&](const std::string&) { there.socket.close(); };
  turns();
  EXPECT_EQ(there.told.back(), "closed 1001");
  there.socket.close();
  turns();
  EXPECT_EQ(there.told.back(), "closed 1001");
}

// The close frame does not fit either. Both messages arrive at once.
TEST_F(WebSocketEndings, NoMessageFollowsCloseWhenQueueIsFull) {
  options.limits = {.low = 10, .high = 20, .max = 100};
  const auto client = raw();
  party.on_told = [&](const std::string& what) {
    if (what != "text first") return;
    EXPECT_FALSE(party.socket.send(std::string(101, 'x')));
    party.socket.close();
  };
  client->send(frame({}, "first") + frame({}, "second"));
  turns();
  EXPECT_THAT(party.told, ElementsAre("text first", StartsWith("closed 1006")));
  EXPECT_EQ(party.error, Error::queue_full);
}

TEST_F(WebSocketEndings, AbortAfterCloseCallsNoHandler) {
  Party there;
  join(there);
  there.told.clear();
  there.socket.close();
  there.socket.abort();
  turns();
  EXPECT_THAT(there.told, IsEmpty());
}

// ---- messages

TEST_F(WebSockets, CarryMessagesOfEverySizeBothWays) {
  Party other;
  WebSocketOptions large{.max_message = 300'000};
  options = large;
  join(other, large);
  for (const std::size_t size : {0, 1, 125, 126, 512, 513, 5'000, 65'535, 65'536, 300'000}) {
    const std::string message(size, 'm');
    party.told.clear();
    other.told.clear();
    EXPECT_TRUE(other.socket.send(message));
    EXPECT_TRUE(party.socket.send(MessageKind::binary, bytes_of(message)));
    turns(60);
    EXPECT_THAT(party.told, ElementsAre("text " + message));
    EXPECT_THAT(other.told, ElementsAre("binary " + message));
    Buffer first, second;
    first.append(message);
    second.append(message);
    EXPECT_TRUE(other.socket.send(MessageKind::text, std::move(first)));
    EXPECT_TRUE(party.socket.send(MessageKind::text, std::move(second)));
    turns(60);
    EXPECT_EQ(party.told.back(), "text " + message);
    EXPECT_EQ(other.told.back(), "text " + message);
  }
}

TEST_F(WebSockets, ReadDataThatArrivesWithHandshake) {
  const auto client = connect();
  client->send(std::string(kAskWebSocket) + "\r\n" + frame({}, "early"));
  turns();
  EXPECT_THAT(party.told, ElementsAre("text early"));
}

TEST_F(WebSockets, SendMessagesInParts) {
  Party other;
  join(other, {.view = MessageView::parts});
  EXPECT_TRUE(party.socket.send_part(MessageKind::text, bytes_of("Hel"), false));
  EXPECT_FALSE(party.socket.send("between"));
  EXPECT_TRUE(party.socket.ping(bytes_of("p")));
  EXPECT_TRUE(party.socket.send_part(MessageKind::text, bytes_of("lo"), true));
  EXPECT_TRUE(party.socket.send("behind"));
  turns();
  EXPECT_THAT(other.told, ElementsAre("open", "part Hel...", "part lo", "part behind"));
  EXPECT_THAT(party.told, ElementsAre("pong p"));
}

TEST_F(WebSockets, RespondToPings) {
  const auto client = raw();
  EXPECT_EQ(exchange(*client, frame({.first = 0x89}, "abc")), from_server(0x8a, "abc"));
  EXPECT_TRUE(party.socket.ping(bytes_of("x")));
  turns();
  exchange(*client, frame({.first = 0x8a}, "x"));
  EXPECT_THAT(party.told, ElementsAre("pong x"));
}

TEST_F(WebSockets, StopReadingWhilePaused) {
  const auto client = raw();
  party.on_told = [&](const std::string&) { party.socket.pause(); };
  exchange(*client, frame({}, "a") + frame({}, "b"));
  EXPECT_THAT(party.told, ElementsAre("text a"));
  party.socket.resume();
  turns();
  EXPECT_THAT(party.told, ElementsAre("text a", "text b"));
}

TEST_F(WebSockets, DeliverMessageThoughTheyAreDestroyedMeanwhile) {
  const auto client = raw();
  std::string seen;
  party.on_told = [&](const std::string& what) {
    party.socket = {};
    seen = what;
  };
  const std::string large(100'000, 'x');
  exchange(*client, frame({}, large) + frame({}, "never"));
  EXPECT_EQ(seen, "text " + large);
  EXPECT_THAT(party.told, ElementsAre("text " + large));
  EXPECT_THAT(client->received, StartsWith(from_server(0x88, close_text(1001))));
}

TEST_F(WebSockets, CloseWithMatchingCodeOnProtocolErrors) {
  const std::pair<std::string, int> breaches[] = {
      {frame({.first = 0x83}, ""), 1002},
      {frame({.is_masked = false}, "a"), 1002},
      {frame({}, "\xff"), 1007},
      {frame({.first = 0x88}, "a"), 1002},
      {frame({}, std::string((1 << 20) + 1, 'a')), 1009},
  };
  for (const auto& [bytes, code] : breaches) {
    party.told.clear();
    const auto client = raw();
    EXPECT_EQ(exchange(*client, bytes + frame({}, "never")), from_server(0x88, close_text(code)));
    EXPECT_TRUE(client->is_ended);
    client->stream().end();
    turns();
    EXPECT_THAT(party.told, ElementsAre(StartsWith("closed 1006")));
    const std::errc expected = code == 1002   ? std::errc::protocol_error
                               : code == 1007 ? std::errc::illegal_byte_sequence
                                              : std::errc::message_size;
    EXPECT_EQ(party.error, expected);
  }
}

// ---- ends

TEST_F(WebSockets, RespondToCloseFrame) {
  const auto client = raw();
  EXPECT_EQ(exchange_last(*client, frame({.first = 0x88}, close_text(3001, "bye"))),
            from_server(0x88, close_text(3001)));
  EXPECT_TRUE(client->is_ended);
  EXPECT_THAT(party.told, ElementsAre("closed 3001 bye"));
  EXPECT_FALSE(party.socket.send("late"));
}

TEST_F(WebSockets, EchoCloseFrameWithoutCode) {
  const auto client = raw();
  EXPECT_EQ(exchange_last(*client, frame({.first = 0x88}, "")), from_server(0x88, ""));
  EXPECT_THAT(party.told, ElementsAre("closed 1005"));
}

TEST_F(WebSockets, CloseWithCodeAndReasonFromEitherSide) {
  for (const bool is_server : {true, false}) {
    party.told.clear();
    Party other;
    join(other);
    (is_server ? party : other).socket.close(CloseCode::policy_violation, "no more");
    EXPECT_FALSE((is_server ? party : other).socket.is_writable());
    turns();
    EXPECT_THAT((is_server ? other : party).told, ::testing::Contains("closed 1008 no more"));
    EXPECT_THAT((is_server ? party : other).told, ::testing::Contains("closed 1008"));
  }
}

TEST_F(WebSockets, DeliverNoMessagesAfterClose) {
  const auto client = raw();
  party.on_told = [&](const std::string&) { party.socket.close(); };
  exchange(*client, frame({}, "a") + frame({}, "b") + frame({.first = 0x8a}, "c"));
  EXPECT_THAT(party.told, ElementsAre("text a"));
  exchange_last(*client, frame({.first = 0x88}, close_text(1000)));
  EXPECT_THAT(party.told, ElementsAre("text a", "closed 1000"));
}

TEST_F(WebSockets, ResumeOnCloseToReadCloseFrame) {
  const auto client = raw();
  party.socket.pause();
  exchange(*client, frame({}, "a"));
  party.socket.close();
  exchange_last(*client, frame({.first = 0x88}, close_text(1000)));
  EXPECT_THAT(party.told, ElementsAre("closed 1000"));
}

TEST_F(WebSockets, WaitForCloseFrameUntilTimeout) {
  const auto client = raw();
  party.socket.close();
  pass(4s);
  EXPECT_THAT(party.told, IsEmpty());
  pass(2s);
  EXPECT_THAT(party.told, ElementsAre(StartsWith("closed 1006")));
  EXPECT_EQ(party.error, Error::deadline);
}

TEST_F(WebSockets, ReportLostConnection) {
  const auto client = raw();
  client->stream().end();
  turns();
  EXPECT_THAT(party.told, ElementsAre(StartsWith("closed 1006")));
  EXPECT_EQ(party.error, std::errc::connection_reset);
}

TEST_F(WebSockets, ReceiveNoCallbacksAfterAbort) {
  const auto client = raw();
  party.socket.abort();
  turns();
  EXPECT_TRUE(client->is_closed);
  EXPECT_THAT(party.told, IsEmpty());
}

TEST_F(WebSockets, RejectAllOperationsWhenEmpty) {
  WebSocket none;
  EXPECT_FALSE(none.is_open() || none.is_writable() || none.is_full());
  EXPECT_FALSE(none.send("a") || none.ping() || none.send_part(MessageKind::text, {}, true));
  EXPECT_FALSE(none.send(MessageKind::text, Buffer()));
  EXPECT_EQ(none.queued(), 0u);
  EXPECT_EQ(none.protocol(), "");
  none.close();
  none.abort();
  none.pause();
  none.resume();
  Topic topic;
  EXPECT_FALSE(topic.subscribe(none) || topic.has(none) || topic.unsubscribe(none));
}

TEST_F(WebSockets, MayOutliveLoop) {
  const auto loop = must(Loop::create());
  auto own_loop = must(Loop::create({.clock = &clock_}));
  {
    http::Server server;
    server = must(http::Server::create(
        *own_loop, [this](http::Exchange exchange) { accept(std::move(exchange)); }));
    auto [mine, theirs] = must(Stream::memory_pair(*own_loop));
    server.add(std::move(theirs));
    mine.write(std::string(kAskWebSocket) + "\r\n");
    for (int i = 0; i < 20; ++i) own_loop->run(Run::no_wait);
    EXPECT_TRUE(party.socket.is_writable());
  }
  own_loop.reset();
  EXPECT_FALSE(party.socket.is_open());
  EXPECT_FALSE(party.socket.send("late"));
  party.socket = {};
}

// ---- silence

TEST_F(WebSockets, PingIdlePeersAndCloseUnresponsiveOnes) {
  options.ping_after = 10s;
  const auto client = raw();
  exchange(*client, frame({}, "a"));
  pass(11s);  // Input postpones the ping.
  EXPECT_EQ(client->received, "");
  pass(11s);
  EXPECT_EQ(client->received, from_server(0x89, ""));
  exchange(*client, frame({.first = 0x8a}, ""));
  pass(11s);
  pass(11s);
  EXPECT_EQ(client->received, from_server(0x89, ""));
  pass(11s);
  EXPECT_EQ(party.told.back(), "closed 1006: " + make_error_code(Error::idle_timeout).message());
  EXPECT_TRUE(client->is_ended || client->is_closed);
}

TEST_F(WebSockets, LeaveNoTimersAfterLastIsClosed) {
  const auto timers_behind_one = [&](Nanos ping_after) {
    options.ping_after = ping_after;
    const auto client = raw();
    client->stream().abort();
    turns();
    return loop_.metrics().active_timers;
  };
  const std::size_t without = timers_behind_one(Nanos{0});
  EXPECT_EQ(timers_behind_one(10s), without);
}

TEST_F(WebSockets, DoNotPingIfDisabled) {
  options.ping_after = Nanos{0};
  const auto client = raw();
  pass(1000s);
  EXPECT_EQ(client->received, "");
  EXPECT_TRUE(party.socket.is_open());
}

TEST_F(WebSockets, DoNotTimeOutWhilePaused) {
  options.ping_after = 10s;
  const auto client = raw();
  pass(11s);  // Pings.
  party.socket.pause();
  client->send(frame({.first = 0x8a}, ""));
  for (int i = 0; i < 5; ++i) pass(11s);
  EXPECT_TRUE(party.socket.is_open());
}

TEST_F(WebSockets, WithOtherOptionsUseOtherTimeouts) {
  options.ping_after = 10s;
  const auto quick = raw();
  Party other;
  accepting = &other;
  options.ping_after = 100s;
  const auto slow = raw();
  pass(11s);
  EXPECT_EQ(quick->received, from_server(0x89, ""));
  EXPECT_EQ(slow->received, "");
}

// ---- back-pressure

TEST_F(WebSockets, DropMessagesButNotPongsIfConfigured) {
  options.limits = {.low = 10, .high = 1000, .max = 2000, .when_full = WhenFull::drop};
  const auto client = raw();
  client->stream().pause();
  while (party.socket.send(std::string(100, 'a'))) continue;
  EXPECT_LE(party.socket.queued(), 2000u);
  EXPECT_TRUE(party.socket.is_full());
  for (int i = 0; i < 1000; ++i) client->send(frame({.first = 0x89}, std::to_string(i)));
  turns();
  EXPECT_LE(party.socket.queued(), 2000u);  // Only the last pong is queued.
  client->stream().resume();
  turns();
  EXPECT_THAT(client->received, EndsWith(from_server(0x8a, "999")));
  EXPECT_THAT(party.told, ElementsAre("drained"));
  EXPECT_TRUE(party.socket.send("again"));
}

TEST_F(WebSockets, CloseSlowReaders) {
  options.limits = {.low = 10, .high = 1000, .max = 2000};
  const auto client = raw();
  client->stream().pause();
  while (party.socket.send(std::string(100, 'a'))) continue;
  turns();
  EXPECT_EQ(party.error, Error::queue_full);
}

TEST_F(WebSockets, PauseReadingWhilePeerDoesNotRead) {
  options.limits = {.low = 10, .high = 1000, .pause_reading = true};
  const auto client = raw();
  party.on_told = [&](const std::string& what) {
    if (what.starts_with("text")) party.socket.send(std::string(300, 'b'));
  };
  client->stream().pause();
  std::string many;
  for (int i = 0; i < 3000; ++i) many += frame({}, "a");
  client->send(many);
  turns();
  EXPECT_LT(party.told.size(), 2000u);
  client->stream().resume();
  turns(3000);
  EXPECT_EQ(std::ranges::count(party.told, "text a"), 3000);
}

// ---- compression

TEST_F(WebSockets, CompressIfBothSidesAgree) {
  options.compression = WebSocketCompression::each_message;
  WebSocketOptions its{.compression = WebSocketCompression::each_message};
  Party other;
  join(other, its);
  const std::string message(50'000, 'z');
  EXPECT_TRUE(party.socket.send(message));
  EXPECT_LT(party.socket.queued(), 1000u);
  EXPECT_TRUE(other.socket.send(message));
  turns();
  EXPECT_THAT(party.told, ElementsAre("text " + message));
  EXPECT_EQ(other.told.back(), "text " + message);
}

TEST_F(WebSockets, DoNotCompressIfOneSideDeclinesOrMessageIsShort) {
  const auto client = raw("Sec-WebSocket-Extensions: permessage-deflate\r\n");
  EXPECT_THAT(answer, Not(HasSubstr("Extensions")));
  options.compression = WebSocketCompression::each_message;
  const auto willing = raw("Sec-WebSocket-Extensions: permessage-deflate\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\nSec-WebSocket-Extensions: permessage-deflate; "
                                "server_no_context_takeover; client_no_context_takeover\r\n"));
  party.socket.send(std::string(255, 'z'));
  party.socket.send(std::string(256, 'z'));
  turns();
  EXPECT_THAT(willing->received, StartsWith(from_server(0x81, std::string(255, 'z'))));
  EXPECT_LT(willing->received.size(), 255u + 4 + 20);
}

// ---- topics

TEST_F(WebSockets, ReceiveMessagesOfTheirTopics) {
  Topic topic;
  Party one;
  accepting = &one;
  const auto first = raw();
  accepting = &party;
  const auto second = raw();
  EXPECT_TRUE(topic.subscribe(one.socket) && topic.subscribe(one.socket));
  EXPECT_TRUE(topic.subscribe(party.socket));
  EXPECT_EQ(topic.size(), 2u);
  EXPECT_EQ(topic.publish("news"), 2u);
  EXPECT_EQ(topic.publish(MessageKind::binary, bytes_of(std::string(10'000, 'x'))), 2u);
  turns();
  const std::string expected =
      from_server(0x81, "news") + from_server(0x82, std::string(10'000, 'x'));
  EXPECT_EQ(first->received, expected);
  EXPECT_EQ(second->received, expected);
  EXPECT_TRUE(topic.unsubscribe(one.socket));
  EXPECT_FALSE(topic.unsubscribe(one.socket) || topic.has(one.socket));
  EXPECT_EQ(topic.publish("more"), 1u);
  party.socket = {};
  EXPECT_EQ(topic.size(), 0u);
}

TEST_F(WebSockets, SenderDoesNotReceiveItsMessageToOthers) {
  Topic topic;
  Party one;
  accepting = &one;
  const auto first = raw();
  accepting = &party;
  const auto second = raw();
  EXPECT_TRUE(topic.subscribe(one.socket) && topic.subscribe(party.socket));
  EXPECT_EQ(topic.publish_to_others(one.socket, "news"), 1u);
  EXPECT_EQ(topic.publish_to_others({}, "all"), 2u);
  EXPECT_TRUE(topic.unsubscribe(one.socket));
  EXPECT_EQ(topic.publish_to_others(one.socket, "more"), 1u);
  turns();
  EXPECT_EQ(first->received, from_server(0x81, "all"));
  EXPECT_EQ(second->received,
            from_server(0x81, "news") + from_server(0x81, "all") + from_server(0x81, "more"));
}

TEST_F(WebSockets, LeaveTopicsOnCloseAndTopicDestruction) {
  const auto client = raw();
  Topic lasting;
  {
    Topic topic;
    EXPECT_TRUE(topic.subscribe(party.socket) && lasting.subscribe(party.socket));
  }
  EXPECT_EQ(lasting.publish("a"), 1u);
  client->stream().end();
  turns();
  EXPECT_EQ(lasting.size(), 0u);
  EXPECT_FALSE(lasting.subscribe(party.socket));
}

TEST_F(WebSockets, ClientReceivesMaskedTopicMessages) {
  Party other;
  join(other);
  Topic topic;
  EXPECT_TRUE(topic.subscribe(other.socket));
  EXPECT_EQ(topic.publish("hello"), 1u);
  turns();
  EXPECT_THAT(party.told, ElementsAre("text hello"));
}

}  // namespace
}  // namespace spate::testing
