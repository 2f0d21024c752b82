// EventSource: events across connections, as the HTML standard describes.
#include "spate/http/event_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spate/http/error.h"
#include "spate/net/framing.h"
#include "spate/net/server.h"
#include "streams/harness.h"
#include "support/closed_port.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::EventSource;
using http::EventSourceHandler;
using http::EventSourceOptions;
using http::HttpError;
using http::ReceivedEvent;

constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

// Responds to each request with the next of the given bytes, and then closes unless `closes` is
// false.
class EventServer {
 public:
  struct Response {
    std::string bytes;
    bool closes = true;
  };
  struct Talker : Session {
    explicit Talker(EventServer& owner) : server(owner) {}
    std::size_t on_data(Bytes bytes) override {
      return split(bytes, Delimiter{"\r\n\r\n"},
                   [this](Bytes head) {
                     server.heads.emplace_back(text_of(head));
                     server.answer(*this);
                   })
          .used;
    }
    EventServer& server;
  };

  explicit EventServer(Loop& loop)
      : server(must(serve<Talker>(loop, Address::loopback_ipv4(0), std::ref(*this)))) {}
  void answer(Session& session) {
    const Response& response = responses[std::min(heads.size(), responses.size()) - 1];
    session.stream().write(response.bytes);
    if (response.closes) session.stream().close();
  }
  std::string url() const { return "http://" + server.address().to_string() + "/events"; }

  std::vector<Response> responses;
  std::vector<std::string> heads;
  Server<Talker> server;
};

struct EventLog final : EventSourceHandler {
  void on_open() override { note("open"); }
  void on_event(const ReceivedEvent& event) override {
    note(std::string(event.type) + ":" + std::string(event.data) + "#" +
         std::string(event.last_id));
  }
  void on_lost(std::error_code error) override {
    lost = error;
    note("lost");
  }
  void on_closed(std::error_code error) override {
    closed = error;
    note("closed");
  }
  void note(std::string line) {
    lines.push_back(std::move(line));
    if (when_noted) when_noted(lines.back());
  }
  bool has(std::string_view line) const { return std::ranges::find(lines, line) != lines.end(); }

  std::vector<std::string> lines;
  std::error_code lost;
  std::error_code closed;
  std::function<void(const std::string& line)> when_noted;
};

class EventSources : public ::testing::Test {
 protected:
  EventSource connect(EventSourceOptions options = {}) {
    if (options.retry == EventSourceOptions().retry) options.retry = 1ms;
    return EventSource::connect(client_, server_.url(), log_, std::move(options));
  }
  void run_until_noted(std::string_view line) {
    run_until(*loop_, [&] { return log_.has(line); });
  }
  using Lines = std::vector<std::string>;

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  EventServer server_{*loop_};
  http::Client client_ = must(http::Client::create(*loop_));
  EventLog log_;
};

std::string stream_of(std::string_view events) {
  return std::string(kStreamHead) + std::string(events);
}

TEST_F(EventSources, ContinuesAfterLastEvent) {
  server_.responses = {{stream_of("id: 1\ndata: a\n\nid: 2\nevent: b\ndata: b\n\ndata: cut\n")},
                       {stream_of("data: c\n\n"), false}};
  EventSource source;
  log_.when_noted = [&](const std::string& line) { EXPECT_EQ(source.is_open(), line != "lost"); };
  source = connect();
  run_until_noted("message:c#2");
  EXPECT_EQ(log_.lines, (Lines{"open", "message:a#1", "b:b#2", "lost", "open", "message:c#2"}));
  EXPECT_EQ(log_.lost, Error::ended);
  EXPECT_EQ(server_.heads[0].find("Last-Event-ID"), std::string::npos);
  EXPECT_NE(server_.heads[0].find("Accept: text/event-stream"), std::string::npos);
  EXPECT_NE(server_.heads[1].find("Last-Event-ID: 2"), std::string::npos);
  EXPECT_EQ(source.last_id(), "2");
  EXPECT_TRUE(source.is_open());
}

TEST_F(EventSources, GivenIdIsSentUntilAnotherArrives) {
  server_.responses = {{stream_of("data: a\n\n")},
                       {stream_of("id:\ndata: b\n\n")},
                       {stream_of("data: c\n\n"), false}};
  const EventSource source = connect({.last_id = "41"});
  run_until_noted("message:c#");
  EXPECT_NE(server_.heads[0].find("Last-Event-ID: 41"), std::string::npos);
  EXPECT_NE(server_.heads[1].find("Last-Event-ID: 41"), std::string::npos);
  EXPECT_EQ(server_.heads[2].find("Last-Event-ID"), std::string::npos);
  EXPECT_TRUE(log_.has("message:a#41"));
  EXPECT_TRUE(log_.has("message:b#"));
}

TEST_F(EventSources, ReconnectionTimeIsThatOfServer) {
  server_.responses = {{stream_of("retry: 600000\n\n")}};
  const EventSource source = connect();
  run_until_noted("lost");
  EXPECT_GT(source.retry_in(), 590s);
  EXPECT_LE(source.retry_in(), 1200s);
}

TEST_F(EventSources, ReconnectionTimeOfServerIsLimited) {
  server_.responses = {{stream_of("retry: 99999999999999999\n\n")}};
  const EventSource source = connect({.max_retry = 10min});
  run_until_noted("lost");
  EXPECT_LE(source.retry_in(), 20min);
}

TEST_F(EventSources, NoContentStops) {
  server_.responses = {{stream_of("data: a\n\n")}, {"HTTP/1.1 204 No Content\r\n\r\n"}};
  const EventSource source = connect();
  run_until_noted("closed");
  EXPECT_EQ(log_.closed, std::error_code());
  EXPECT_FALSE(source.is_open());
  EXPECT_EQ(source.status(), http::Status::no_content);
  EXPECT_EQ(server_.heads.size(), 2u);
}

TEST_F(EventSources, OtherContentTypeStops) {
  server_.responses = {
      {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"}};
  const EventSource source = connect();
  run_until_noted("closed");
  EXPECT_EQ(log_.closed, HttpError::not_event_stream);
  EXPECT_EQ(log_.lines, (Lines{"closed"}));
}

TEST_F(EventSources, ContentTypeMayHaveParameters) {
  server_.responses = {
      {"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n"
       "Connection: close\r\n\r\ndata: a\n\n"}};
  const EventSource source = connect();
  run_until_noted("message:a#");
}

TEST_F(EventSources, OtherStatusStops) {
  server_.responses = {{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}};
  const EventSource source = connect();
  run_until_noted("closed");
  EXPECT_EQ(log_.closed, HttpError::not_event_stream);
  EXPECT_EQ(source.status(), http::Status::not_found);
}

TEST_F(EventSources, TemporaryStatusIsRetried) {
  server_.responses = {{"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"},
                       {stream_of("data: a\n\n"), false}};
  const EventSource source = connect();
  run_until_noted("message:a#");
  EXPECT_EQ(log_.lines, (Lines{"lost", "open", "message:a#"}));
  EXPECT_EQ(log_.lost, HttpError::not_event_stream);
}

TEST_F(EventSources, StopsAfterGivenNumberOfFailures) {
  const std::string url = closed_url();
  const EventSource source =
      EventSource::connect(client_, url, log_, {.retry = 1ms, .max_failures = 3});
  run_until_noted("closed");
  EXPECT_EQ(log_.lines, (Lines{"lost", "lost", "closed"}));
  EXPECT_EQ(log_.closed, std::errc::connection_refused);
}

TEST_F(EventSources, InvalidUrlStops) {
  const EventSource source = EventSource::connect(client_, "nowhere", log_);
  EXPECT_TRUE(log_.lines.empty());
  run_until_noted("closed");
  EXPECT_EQ(log_.closed, HttpError::invalid_url);
}

TEST_F(EventSources, SilentServerIsLeftAfterResponseTimeout) {
  server_.responses = {{"", false}, {stream_of("data: a\n\n"), false}};
  const EventSource source = connect({.response_timeout = 20ms});
  run_until_noted("lost");
  EXPECT_EQ(log_.lost, Error::deadline);
  run_until_noted("open");
}

TEST_F(EventSources, SilentStreamIsLeftAfterIdleTimeout) {
  server_.responses = {{stream_of("data: a\n\n"), false}};
  const EventSource source = connect({.idle_timeout = 20ms});
  run_until_noted("lost");
  EXPECT_EQ(log_.lost, Error::idle_timeout);
}

TEST_F(EventSources, LongEventStops) {
  server_.responses = {{stream_of("data: " + std::string(200, 'x') + "\n\n"), false}};
  const EventSource source = connect({.max_event = 100});
  run_until_noted("closed");
  EXPECT_EQ(log_.closed, std::errc::message_size);
}

TEST_F(EventSources, ReconnectsWhenAsked) {
  server_.responses = {{stream_of("retry: 600000\ndata: a\n\n")},
                       {stream_of("data: b\n\n"), false}};
  EventSource source = connect();
  run_until_noted("lost");
  source.reconnect();
  run_until_noted("message:b#");
  EXPECT_EQ(source.retry_in(), 0s);
}

TEST_F(EventSources, IsMovedWithItsConnection) {
  server_.responses = {{stream_of("data: a\n\n"), false}};
  EventSource first = connect();
  EventSource second = std::move(first);
  run_until_noted("message:a#");
  EXPECT_FALSE(first.is_open());
  EXPECT_TRUE(second.is_open());
}

TEST_F(EventSources, MayBeDestroyedInEachCallback) {
  for (const std::string where : {"open", "message:a#", "lost", "closed"}) {
    server_.heads.clear();
    server_.responses = {{stream_of("data: a\n\ndata: b\n\n")},
                         {"HTTP/1.1 204 No Content\r\n\r\n"}};
    log_.lines.clear();
    std::optional<EventSource> source = connect();
    log_.when_noted = [&](const std::string& line) {
      if (line == where) source.reset();
    };
    run_until_noted(where);
    run_turns(*loop_, 5);
    EXPECT_EQ(log_.lines.back(), where);
  }
}

}  // namespace
}  // namespace spate::testing
