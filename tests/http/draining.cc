// Draining a server: idle connections are closed at once, received requests are served, and no
// client delays it by keeping its socket open.
#include <memory>
#include <string>

#include "http/http2_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Draining : public Http2ServerTest {
 protected:
  std::unique_ptr<RawClient> connect_by_socket() {
    auto [mine, theirs] = must(Stream::socket_pair(loop_));
    server_.add(std::move(theirs));
    return std::make_unique<RawClient>(std::move(mine));
  }
  void drain() {
    server_.drain(60 * kSecond, [this] { is_done_ = true; });
  }

  bool is_done_ = false;
};

TEST_F(Draining, ClosesIdleConnectionsAtOnce) {
  const auto client = connect_by_socket();
  client->send(kGet);
  const auto client2 = connect2();
  client2->get("/");
  turns();
  pass(2 * kSecond);
  drain();
  turns();
  EXPECT_TRUE(client->is_ended);
  EXPECT_TRUE(client2->is_ended);
  EXPECT_TRUE(is_done_);
}

TEST_F(Draining, CallsEachCallbackWhenDrainedTwice) {
  const auto client = connect_by_socket();
  client->send(kGet);
  turns();
  drain();
  bool is_second_done = false;
  server_.drain(30 * kSecond);
  server_.drain(30 * kSecond, [&] { is_second_done = true; });
  EXPECT_FALSE(is_done_);
  pass(2 * kSecond);
  turns();
  EXPECT_TRUE(is_done_);
  EXPECT_TRUE(is_second_done);
}

TEST_F(Draining, CallsNoFurtherCallbackWhileConnectionOfDestructorIsOpen) {
  std::unique_ptr<RawClient> client;
  std::shared_ptr<void> connects(nullptr, [&](void*) {
    client = connect_by_socket();
    client->send("GET / HT");
  });
  bool is_second_done = false;
  server_.drain(60 * kSecond, [connects = std::move(connects)] {});
  server_.drain(60 * kSecond, [&] { is_second_done = true; });
  turns();
  ASSERT_TRUE(client);
  EXPECT_FALSE(is_second_done);
  client->stream().abort();
  turns();
  EXPECT_TRUE(is_second_done);
}

TEST_F(Draining, DoesNotKeepLoopAlive) {
  const auto client = connect_by_socket();
  client->send(kGet);
  turns();
  pass(2 * kSecond);
  server_.drain(60 * kSecond);
  turns();
  EXPECT_TRUE(client->is_ended);
  client->stream().abort();
  turns();
  EXPECT_FALSE(loop_.has_work());
}

TEST_F(Draining, DoesNotKeepLoopAliveAfterLastRequest) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect_by_socket();
  client->send(kGet);
  turns();
  drain();
  kept.respond("last\n");
  turns();
  client->stream().abort();
  turns();
  EXPECT_TRUE(is_done_);
  EXPECT_FALSE(loop_.has_work());
}

TEST_F(Draining, GivesRecentlyServedClientsOneSecond) {
  const auto client = connect_by_socket();
  client->send(kGet);
  turns();
  drain();
  turns();
  EXPECT_FALSE(client->is_ended);
  client->received.clear();
  client->send(kGet);
  turns();
  EXPECT_THAT(client->received, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(is_done_);
}

TEST_F(Draining, GivesNewClientsOneSecond) {
  const auto late = connect_by_socket();
  const auto silent = connect_by_socket();
  turns();
  drain();
  turns();
  EXPECT_FALSE(late->is_ended);
  late->send(kGet);
  turns();
  EXPECT_THAT(late->received, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(late->received, EndsWith("hello\n"));
  EXPECT_FALSE(silent->is_ended || is_done_);
  pass(kSecond);
  EXPECT_TRUE(silent->is_ended);
  EXPECT_TRUE(is_done_);
}

TEST_F(Draining, ServesRequestsThatArrivedBefore) {
  const auto client = connect_by_socket();
  client->send(kGet);
  turns();
  client->received.clear();
  client->send(kGet);
  drain();
  turns();
  EXPECT_THAT(client->received, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(client->received, EndsWith("hello\n"));
  EXPECT_TRUE(is_done_);
}

// They wait because the client does not read its responses.
TEST_F(Draining, ServesWaitingPipelinedRequests) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(600'000, 'x')); };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write(std::string(kGet) + std::string(kGet));
  turns();
  EXPECT_EQ(server_.metrics().requests, 1u);
  pass(2 * kSecond);
  drain();
  turns();
  pass(2 * kSecond);
  RawClient client(std::move(mine));
  turns(200);
  EXPECT_EQ(server_.metrics().requests, 2u);
  EXPECT_THAT(client.received, HasSubstr("Connection: close\r\n"));
}

TEST_F(Draining, ServesNextRequestAfterAnnouncedKeepAlive) {
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(http::Status::ok);
    kept = std::move(exchange);
  };
  const auto client = connect_by_socket();
  client->send(kGet);
  turns();
  drain();
  turns();
  EXPECT_FALSE(is_done_);
  on_request = [](Exchange exchange) { exchange.respond("second\n"); };
  client->send(kGet);
  kept.end();
  turns();
  EXPECT_THAT(client->received, EndsWith("second\n"));
  EXPECT_TRUE(is_done_);
}

TEST_F(Draining, WaitsOneSecondForClientThatIsServedMeanwhile) {
  serve2({});
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();  // Not over a socket: its end is awaited.
  client->send(kGet);
  turns();
  drain();
  turns();
  kept.respond("last\n");
  turns();
  EXPECT_THAT(client->received, EndsWith("last\n"));
  EXPECT_FALSE(is_done_);
  pass(kSecond + Nanos{1'000'000});
  turns();
  EXPECT_TRUE(is_done_);
}

TEST_F(Draining, DoesNotWaitForClientsThatKeepSocketOpen) {
  for (const bool is_memory : {false, true}) {
    is_done_ = false;
    serve2({});
    Exchange kept;
    on_request = [&](Exchange exchange) { kept = std::move(exchange); };
    const auto busy = is_memory ? connect() : connect_by_socket();
    busy->send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    turns();
    const auto idle = is_memory ? connect() : connect_by_socket();
    on_request = [](Exchange exchange) { exchange.respond("x"); };
    idle->send(kGet);
    turns();
    drain();
    turns();
    kept.respond("last\n");
    turns();
    busy->stream().end();
    turns();
    EXPECT_FALSE(is_done_);  // The other one may still send a request.
    pass(kSecond + Nanos{1'000'000});
    EXPECT_EQ(is_done_, !is_memory);
    pass(kSecond + Nanos{1'000'000});
    EXPECT_TRUE(is_done_);
  }
}

}  // namespace
}  // namespace spate::testing
