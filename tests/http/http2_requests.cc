// A server that speaks HTTP/2: the requests of its streams.
#include <string>

#include "http/http2_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using ::testing::ElementsAre;

// ---- requests

class Http2Requests : public Http2ServerTest {};

TEST_F(Http2Requests, HaveSameContentAsInHttp1) {
  on_request = [](Exchange exchange) {
    const http::Request& request = exchange.request();
    EXPECT_EQ(request.method(), http::Method::get);
    EXPECT_EQ(request.version(), http::Version::http_2);
    EXPECT_EQ(request.target(), "/a%20b?c=d");
    EXPECT_EQ(request.path(), "/a%20b");
    EXPECT_EQ(request.query(), "c=d");
    EXPECT_EQ(request.host(), "a");
    EXPECT_EQ(request[http::FieldId::host], "a");
    EXPECT_EQ(request[http::FieldId::cookie], "a=1; b=2");
    EXPECT_EQ(request["x-one"], "1");
    EXPECT_FALSE(request.has_body());
    EXPECT_EQ(request.content_length(), 0u);
    exchange.respond("good");
  };
  EXPECT_EQ(ask({{"cookie", "a=1"}, {"x-one", "1"}, {"cookie", "b=2"}}, "/a%20b?c=d").body, "good");
}

TEST_F(Http2Requests, MayRepeatHostButNotContradictAuthority) {
  EXPECT_EQ(ask({{"host", "a"}}).status, 200);
  EXPECT_EQ(ask({{"host", "b"}}).status, 400);
  EXPECT_EQ(server_.metrics().refused, 1u);
}

TEST_F(Http2Requests, MayHaveHostFieldInsteadOfAuthority) {
  on_request = [](Exchange exchange) { exchange.respond(exchange.request().host()); };
  const auto client = connect2();
  const auto id = client->begin(
      {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"x-one", "1"}, {"host", "b"}},
      false);
  turns();
  EXPECT_EQ(client->answers[id].body, "b");
}

TEST_F(Http2Requests, UseClientAddressFromProxyProtocol) {
  http::ServerOptions options;
  options.proxy_protocol = http::ProxyProtocol::always;
  serve2(std::move(options));
  on_request = [](Exchange exchange) { exchange.respond(exchange.request().peer().to_string()); };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write("PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\n");
  Http2Client client(std::move(mine));
  const auto id = client.get("/");
  turns();
  EXPECT_EQ(client.answers[id].body, "192.0.2.1:1000");
}

TEST_F(Http2Requests, AreRefusedBeyondTheirLimits) {
  http::ServerOptions options;
  options.max_head = 2000;
  options.max_request_line = 100;
  options.max_fields = 5;
  options.max_body = 10;
  serve2(std::move(options));
  EXPECT_EQ(ask({{"x", std::string(2000, 'x')}}).status, 431);
  EXPECT_EQ(ask({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}}).status, 200);
  EXPECT_EQ(ask({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}}).status, 431);
  EXPECT_EQ(ask({}, "/" + std::string(99, 'a')).status, 200);
  EXPECT_EQ(ask({}, "/" + std::string(100, 'a')).status, 414);
  const auto client = connect2();
  const auto said = client->post("/", std::string(11, 'x'), {{"content-length", "11"}});
  const auto unsaid = client->post("/", std::string(11, 'x'));
  turns();
  EXPECT_EQ(client->answers[said].status, 413);
  EXPECT_EQ(client->answers[unsaid].status, 200);  // The body was not read.
  EXPECT_EQ(server_.metrics().refused, 4u);
}

TEST_F(Http2Requests, MayHaveBodies) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    EXPECT_TRUE(exchange.request().has_body());
    EXPECT_FALSE(exchange.request().content_length());
    kept = std::make_unique<Kept>(std::move(exchange));
  };
  const auto client = connect2();
  const auto id = client->open_post("/");
  client->write(id, "one ", false);
  turns();
  EXPECT_EQ(kept->body, "one ");
  client->write(id, "two", true, {{"checksum", "7"}});
  turns();
  EXPECT_EQ(kept->body, "one two");
  EXPECT_TRUE(kept->is_ended);
  EXPECT_EQ(kept->trailer, "checksum=7");
  kept->exchange.respond("thanks");
  turns();
  EXPECT_TRUE(kept->is_closed && !kept->error);
  EXPECT_EQ(client->answers[id].body, "thanks");
  EXPECT_EQ(server_.metrics().received, 7u);
}

TEST_F(Http2Requests, WithTooLongBodyAreRefused) {
  http::ServerOptions options;
  options.max_body = 10;
  serve2(std::move(options));
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) { kept = std::make_unique<Kept>(std::move(exchange)); };
  const auto client = connect2();
  const auto id = client->open_post("/");
  client->write(id, std::string(11, 'x'), false);
  turns();
  EXPECT_EQ(client->answers[id].status, 413);
  pass(kSecond);
  pass(kSecond);  // The client may use up its window before.
  EXPECT_TRUE(client->answers[id].is_closed);
  EXPECT_EQ(client->answers[id].code, 0u);
  EXPECT_EQ(kept->error, std::errc::message_size);
}

TEST_F(Http2Requests, WithUnreadBodyDoNotBlockOthers) {
  std::vector<std::unique_ptr<Kept>> kept;
  on_request = [&](Exchange exchange) {
    const bool is_paused = exchange.request().path() == "/paused";
    if (is_paused) {
      kept.push_back(std::make_unique<Kept>(std::move(exchange)));
      return kept.back()->exchange.pause();
    }
    read_body(std::move(exchange), 10'000'000,
              [](Exchange whole, Bytes body) { whole.respond(std::to_string(body.size())); });
  };
  const auto client = connect2();
  const std::string text = repeated(1'000'000);
  std::vector<std::int32_t> paused;
  for (int i = 0; i < 8; ++i) paused.push_back(client->post("/paused", text));
  turns(50);
  const auto read = client->post("/read", text);
  turns(50);
  EXPECT_EQ(client->answers[read].body, "1000000");
  EXPECT_EQ(client->answers[paused[0]].unsent.size(), text.size() - 256 * 1024);
  kept[0]->exchange.resume();
  turns(50);
  EXPECT_EQ(kept[0]->body, text);
  EXPECT_TRUE(kept[0]->is_ended);
}

TEST_F(Http2Requests, WaitFor100Continue) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) { exchanges.push_back(std::move(exchange)); };
  const auto client = connect2();
  const auto id = client->open_post("/", {{"expect", "100-continue"}});
  turns();
  EXPECT_TRUE(client->answers[id].informed.empty());
  Kept kept(std::move(exchanges[0]));
  turns();
  EXPECT_THAT(client->answers[id].informed, ElementsAre(100));
  EXPECT_EQ(ask({{"expect", "miracles"}}).status, 417);
}

TEST_F(Http2Requests, AreResetWithNoErrorAfterEarlyResponse) {
  const auto client = connect2();
  const auto id = client->open_post("/");
  client->write(id, "one", false);
  turns();
  EXPECT_EQ(client->answers[id].body, "hello\n");
  EXPECT_TRUE(client->answers[id].is_ended);
  pass(kSecond);
  pass(kSecond);  // The client may use up its window before.
  EXPECT_TRUE(client->answers[id].is_closed);
  EXPECT_EQ(client->answers[id].code, 0u);
}

TEST_F(Http2Requests, EndTheirExchangeWhenReset) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) { kept = std::make_unique<Kept>(std::move(exchange)); };
  const auto client = connect2();
  client->reset(client->get("/"));
  turns();
  ASSERT_TRUE(kept->is_closed);
  EXPECT_EQ(kept->error, std::errc::connection_reset);
  EXPECT_FALSE(kept->exchange.respond("late"));
}

TEST_F(Http2Requests, ReceiveEndOfClient) {
  std::vector<std::unique_ptr<Kept>> kept;
  on_request = [&](Exchange exchange) {
    kept.push_back(std::make_unique<Kept>(std::move(exchange)));
  };
  const auto client = connect2();
  const auto whole = client->get("/");
  client->open_post("/");
  turns();
  client->stream().end();
  turns();
  EXPECT_TRUE(kept[0]->has_client_ended && !kept[0]->is_closed);
  EXPECT_EQ(kept[1]->error, std::errc::connection_reset);
  kept[0]->exchange.respond("bye");
  turns();
  EXPECT_EQ(client->answers[whole].body, "bye");
  EXPECT_TRUE(client->is_closed);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Http2Requests, MayDestroyServer) {
  on_request = [&](Exchange) { server_ = {}; };
  const auto client = connect2();
  client->get("/");
  turns();
  EXPECT_TRUE(client->is_closed || client->is_ended);
}

TEST_F(Http2Requests, AreCountedPerConnection) {
  http::ServerOptions options;
  options.max_requests = 2;
  serve2(std::move(options));
  const auto client = connect2();
  const auto first = client->get("/");
  const auto second = client->get("/");
  turns();
  EXPECT_EQ(client->answers[first].body, "hello\n");
  EXPECT_EQ(client->answers[second].body, "hello\n");
  EXPECT_THAT(client->goaways, ElementsAre(std::pair(second, 0u)));
  EXPECT_TRUE(client->is_ended);
}

}  // namespace
}  // namespace spate::testing
