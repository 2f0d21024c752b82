// Server-sent events: streams, their comments, slow readers, and channels with many subscribers.
#include "spate/http/events.h"

#include <optional>
#include <vector>

#include "http/harness.h"
#include "spate/error.h"

namespace spate::testing {
namespace {

using http::EventChannel;
using http::EventStream;
using http::EventStreamOptions;
using http::Exchange;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

constexpr std::string_view kGet10 = "GET / HTTP/1.0\r\n\r\n";  // Without chunks.

class EventStreams : public HttpServerTest {
 protected:
  EventStreams() {
    on_request = [this](Exchange exchange) { open(std::move(exchange)); };
  }
  void open(Exchange exchange) {
    stream_ = EventStream::open(std::move(exchange), options_);
    stream_.set_on_closed([this](std::error_code error) {
      ++closed_;
      error_ = error;
    });
  }
  std::unique_ptr<RawClient> subscribe(std::string_view request = kGet10) {
    auto client = connect();
    client->send(request);
    turns();
    return client;
  }
  static std::string body(const RawClient& client) {
    return client.received.substr(client.received.find("\r\n\r\n") + 4);
  }

  EventStreamOptions options_;
  EventStream stream_;
  int closed_ = 0;
  std::error_code error_;
};

TEST_F(EventStreams, SendHeaderSectionAtOnce) {
  const auto client = subscribe(kGet);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client->received, HasSubstr("\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_THAT(client->received, HasSubstr("\r\nCache-Control: no-cache\r\n"));
  EXPECT_THAT(client->received, HasSubstr("\r\nX-Accel-Buffering: no\r\n"));
  EXPECT_THAT(client->received, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(stream_.is_open());
}

TEST_F(EventStreams, SendEventsAtOnce) {
  const auto client = subscribe();
  EXPECT_TRUE(stream_.send("hello"));
  turns();
  EXPECT_EQ(body(*client), "data: hello\n\n");
  EXPECT_TRUE(stream_.send({.data = "a\nb", .event = "move", .id = "7", .retry = 3s}));
  EXPECT_TRUE(stream_.comment("still here"));
  turns();
  EXPECT_THAT(body(*client), HasSubstr("event: move\n"));
  EXPECT_THAT(body(*client), HasSubstr("data: a\ndata: b\n"));
  EXPECT_THAT(body(*client), HasSubstr("retry: 3000\n"));
  EXPECT_THAT(body(*client), HasSubstr(": still here\n"));
}

TEST_F(EventStreams, RejectLineBreaksInEventAndId) {
  const auto client = subscribe();
  EXPECT_FALSE(stream_.send({.data = "x", .event = "a\nb"}));
  EXPECT_FALSE(stream_.send({.data = "x", .id = "a\rb"}));
  turns();
  EXPECT_EQ(body(*client), "");
  EXPECT_TRUE(stream_.is_open());
}

TEST_F(EventStreams, ProvideLastEventId) {
  const auto client = subscribe("GET / HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 42\r\n\r\n");
  EXPECT_EQ(stream_.last_event_id(), "42");
  EXPECT_EQ(EventStream().last_event_id(), "");
}

TEST_F(EventStreams, SendHeartbeatCommentsWhenIdle) {
  const auto client = subscribe();
  pass(14s);
  EXPECT_EQ(body(*client), "");
  pass(1s);
  EXPECT_EQ(body(*client), ":\n\n");
  pass(10s);
  stream_.send("x");
  pass(10s);
  EXPECT_EQ(body(*client), ":\n\ndata: x\n\n");
  pass(5s);
  EXPECT_THAT(body(*client), EndsWith("data: x\n\n:\n\n"));
}

TEST_F(EventStreams, SendNoHeartbeatIfDisabled) {
  options_.heartbeat = Nanos{0};
  const auto client = subscribe();
  pass(3600s);
  EXPECT_EQ(body(*client), "");
  EXPECT_TRUE(stream_.is_open());
}

TEST_F(EventStreams, EndWhenOwnerEndsThem) {
  const auto client = subscribe(kGet);
  stream_.send("x");
  stream_.end();
  turns();
  EXPECT_THAT(client->received, EndsWith("0\r\n\r\n"));
  EXPECT_FALSE(stream_.is_open());
  EXPECT_FALSE(stream_.send("y"));
  EXPECT_EQ(closed_, 0);
  client->send(kGet);  // The connection stays open.
  turns();
  EXPECT_TRUE(stream_.is_open());
}

TEST_F(EventStreams, ReportDisconnectedClient) {
  auto client = subscribe();
  client->stream().abort();
  turns();
  EXPECT_EQ(closed_, 1);
  EXPECT_EQ(error_, std::errc::connection_reset);
  EXPECT_FALSE(stream_.is_open());
  EXPECT_FALSE(stream_.send("x"));
  pass(60s);
  EXPECT_EQ(closed_, 1);
}

TEST_F(EventStreams, AreClosedWhenClientEnds) {
  const auto client = subscribe();
  client->stream().end();
  turns();
  EXPECT_EQ(closed_, 1);
  EXPECT_FALSE(error_);
  EXPECT_TRUE(client->is_closed);
}

TEST_F(EventStreams, MayBeDestroyedInOnClosed) {
  auto client = subscribe();
  stream_.set_on_closed([this](std::error_code) {
    ++closed_;
    stream_ = {};
  });
  client->stream().abort();
  turns();
  EXPECT_EQ(closed_, 1);
}

TEST_F(EventStreams, AreClosedIfClientReadsTooSlowly) {
  options_.max_queued = 100'000;
  const auto client = subscribe();
  client->stream().pause();
  const std::string data(10'000, 'x');
  int sent = 0;
  while (stream_.send(data) && sent < 1000) {
    ++sent;
    turns();
  }
  EXPECT_LT(sent, 1000);
  EXPECT_GE(sent, 9);
  EXPECT_FALSE(stream_.is_open());
  EXPECT_EQ(closed_, 0);  // Not from inside the call.
  turns();
  EXPECT_EQ(closed_, 1);
  EXPECT_EQ(error_, Error::queue_full);
}

TEST_F(EventStreams, MayDropEventsWhenFull) {
  options_.max_queued = 100'000;
  options_.when_full = WhenFull::drop;
  const auto client = subscribe();
  client->stream().pause();
  const std::string data(10'000, 'x');
  int sent = 0;
  while (stream_.send(data) && sent < 1000) {
    ++sent;
    turns();
  }
  EXPECT_LT(sent, 1000);
  EXPECT_TRUE(stream_.is_open());
  EXPECT_LE(stream_.queued(), 100'000U);
  client->stream().resume();
  turns(100);
  EXPECT_TRUE(stream_.send("after"));
  turns(100);
  EXPECT_THAT(client->received, EndsWith("data: after\n\n"));
  EXPECT_EQ(closed_, 0);
}

TEST_F(EventStreams, ResponseToHeadEndsAfterHeaderSection) {
  const auto client = subscribe("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client->received, HasSubstr("text/event-stream"));
  EXPECT_THAT(client->received, EndsWith("\r\n\r\n"));
  EXPECT_FALSE(stream_.is_open());
  client->send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  client->received.clear();
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(EventStreams, StreamOfFinishedExchangeIsClosed) {
  bool was_open = true;
  on_request = [&](Exchange exchange) {
    exchange.respond("x");
    was_open = EventStream::open(std::move(exchange)).is_open();
  };
  EXPECT_THAT(talk(kGet), EndsWith("\r\n\r\nx"));
  EXPECT_FALSE(was_open);
  EXPECT_FALSE(EventStream::open({}).is_open());
}

TEST_F(EventStreams, SendAdditionalFields) {
  on_request = [this](Exchange exchange) {
    http::Fields fields;
    fields.add("Access-Control-Allow-Origin", "*");
    stream_ = EventStream::open(std::move(exchange), {}, fields);
  };
  EXPECT_THAT(subscribe()->received, HasSubstr("\r\nAccess-Control-Allow-Origin: *\r\n"));
}

TEST_F(EventStreams, OutliveServer) {
  const auto client = subscribe();
  server_ = {};
  EXPECT_FALSE(stream_.is_open());
  EXPECT_FALSE(stream_.send("x"));
}

// ---- channels

class EventChannels : public EventStreams {
 protected:
  EventChannels() {
    on_request = [this](Exchange exchange) {
      channel_->add(EventStream::open(std::move(exchange), options_));
    };
  }
  std::optional<EventChannel> channel_{std::in_place};
};

TEST_F(EventChannels, PublishToAllStreams) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(subscribe());
  EXPECT_EQ(channel_->size(), 5U);
  EXPECT_EQ(channel_->publish("hello"), 5U);
  EXPECT_EQ(channel_->publish({.data = "x", .event = "a\nb"}), 0U);
  turns();
  for (const auto& client : clients) EXPECT_EQ(body(*client), "data: hello\n\n");
}

TEST_F(EventChannels, RemoveDisconnectedClients) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(subscribe());
  clients[1]->stream().abort();
  turns();
  EXPECT_EQ(channel_->size(), 2U);
  clients[0]->stream().abort();
  turns();
  clients[2]->stream().abort();
  turns();
  EXPECT_EQ(channel_->size(), 0U);
  EXPECT_EQ(channel_->publish("x"), 0U);
}

TEST_F(EventChannels, DropSlowClientsAndServeOthers) {
  options_.max_queued = 50'000;
  const auto slow = subscribe();
  const auto quick = subscribe();
  slow->stream().pause();
  const std::string data(10'000, 'x');
  int count = 0;
  while (channel_->publish(data) == 2 && count < 1000) {
    ++count;
    turns();
  }
  EXPECT_LT(count, 1000);
  turns();
  EXPECT_EQ(channel_->size(), 1U);
  channel_->publish("last");
  turns();
  EXPECT_THAT(quick->received, EndsWith("data: last\n\n"));
}

TEST_F(EventChannels, CallOnClosedForDisconnectedClients) {
  on_request = [this](Exchange exchange) {
    EventStream stream = EventStream::open(std::move(exchange));
    stream.set_on_closed([this](std::error_code) {
      ++closed_;
      EXPECT_EQ(channel_->size(), 1U);
      channel_.reset();
    });
    channel_->add(std::move(stream));
  };
  const auto first = subscribe();
  const auto second = subscribe();
  first->stream().abort();
  turns();
  EXPECT_EQ(closed_, 1);
  EXPECT_TRUE(second->is_ended);
}

TEST_F(EventChannels, EndTheirStreamsWhenDestroyed) {
  const auto client = subscribe();
  channel_.reset();
  turns();
  EXPECT_TRUE(client->is_ended);
}

TEST_F(EventChannels, RemoveStreamsOfDestroyedServer) {
  const auto client = subscribe();
  server_ = {};
  EXPECT_EQ(channel_->publish("x"), 0U);
  turns();
  EXPECT_EQ(channel_->size(), 0U);
}

TEST_F(EventChannels, RejectClosedStreams) {
  EXPECT_FALSE(channel_->add({}));
  EXPECT_EQ(channel_->size(), 0U);
}

}  // namespace
}  // namespace spate::testing
