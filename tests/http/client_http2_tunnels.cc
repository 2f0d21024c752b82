// Upgrades of a client over HTTP/2 (RFC 8441): tunnels to our server.
#include <chrono>
#include <string>
#include <vector>

#include "http/tunnel_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::Status;
using ::testing::ElementsAre;

class ClientTunnels : public TunnelPairTest {
 protected:
  ClientTunnels() : TunnelPairTest(HttpProtocol::http2) {}
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

// A 2xx response would mean that the server has agreed.
TEST_F(ClientTunnels, ServerWithoutTunnelsRespondsNotImplemented) {
  on_request = say_hello;
  ask();
  turns();
  EXPECT_THAT(here_.told, ElementsAre("501", "body", "end", "closed"));
  EXPECT_EQ(here_.body, "hello\n");
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

}  // namespace
}  // namespace spate::testing
