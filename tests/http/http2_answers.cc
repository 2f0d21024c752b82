// A server that speaks HTTP/2: the requests and responses of its streams.
#include <fcntl.h>
#include <unistd.h>

#include "http/http2_harness.h"
#include "spate/http/router.h"
#include "support/pool_work.h"
#include "support/slow_disk.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Fields;
using http::Status;
using ::testing::ElementsAre;
using ::testing::EndsWith;

std::string repeated(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// A file without a name.
int file_of(std::string_view text) {
  char name[] = "/tmp/spate_http2_XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

class Http2Answers : public Http2ServerTest {};

TEST_F(Http2Answers, MatchOtherVersions) {
  const auto answer = ask();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "hello\n");
  EXPECT_EQ(answer.fields.at("content-length"), "6");
  EXPECT_EQ(answer.fields.at("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(answer.fields.at("date"), "Tue, 14 Nov 2023 22:13:20 GMT");
  EXPECT_TRUE(answer.is_ended);
  EXPECT_EQ(answer.code, 0u);
}

TEST_F(Http2Answers, CoexistWithHttp1) {
  EXPECT_THAT(talk(kGet), EndsWith("hello\n"));
  EXPECT_EQ(ask().body, "hello\n");
}

TEST_F(Http2Answers, AcceptPrefaceInAnyFragmentation) {
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  RawClient client(std::move(mine));
  const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  for (const char each : preface) {
    client.send({&each, 1});
    turns(3);
  }
  EXPECT_EQ(client.received.substr(3, 1), "\4");  // SETTINGS
  EXPECT_FALSE(client.is_ended || client.is_closed);
}

TEST_F(Http2Answers, RequireEnabledHttp2) {
  serve_with({});
  EXPECT_THAT(talk("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ::testing::StartsWith("HTTP/1.1 505"));
}

TEST_F(Http2Answers, ContainAddedFields) {
  on_request = [](Exchange exchange) {
    Fields fields;
    for (int i = 0; i < 60; ++i) fields.add("X-" + std::to_string(i), "Value");
    exchange.respond(Status::found, fields);
  };
  const auto answer = ask();
  EXPECT_EQ(answer.status, 302);
  EXPECT_EQ(answer.fields.at("x-59"), "Value");
  EXPECT_EQ(answer.fields.at("content-length"), "0");
}

TEST_F(Http2Answers, OmitBodyWhereForbidden) {
  const auto answer = ask({}, "/", "HEAD");
  EXPECT_EQ(answer.fields.at("content-length"), "6");
  EXPECT_TRUE(answer.body.empty() && answer.is_ended);
  on_request = [](Exchange exchange) { exchange.respond(Status::no_content, "hello"); };
  EXPECT_TRUE(ask().body.empty());
}

TEST_F(Http2Answers, MayBeSentInAnyOrder) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) { exchanges.push_back(std::move(exchange)); };
  const auto client = connect2();
  const auto first = client->get("/1");
  const auto second = client->get("/2");
  turns();
  ASSERT_EQ(exchanges.size(), 2u);
  exchanges[1].respond("two");
  turns();
  EXPECT_EQ(client->answers[second].body, "two");
  EXPECT_FALSE(client->answers[first].is_closed);
  EXPECT_EQ(exchanges[0].request().path(), "/1");
  exchanges[0].respond("one");
  turns();
  EXPECT_EQ(client->answers[first].body, "one");
  EXPECT_EQ(server_.metrics().exchanges, 0u);
}

TEST_F(Http2Answers, InPartsMayHaveTrailers) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("one ");
    exchange.write("two");
    Fields fields;
    fields.add("Checksum", "5");
    exchange.end(fields);
  };
  const auto answer = ask();
  EXPECT_EQ(answer.body, "one two");
  EXPECT_EQ(answer.trailers.at("checksum"), "5");
  EXPECT_FALSE(answer.fields.contains("content-length"));
}

TEST_F(Http2Answers, MayFollowInterimResponses) {
  on_request = [](Exchange exchange) {
    Fields bad;
    bad.add("Connection", "close");
    EXPECT_FALSE(exchange.inform(Status::early_hints, bad));
    EXPECT_FALSE(exchange.inform(Status::switching_protocols));
    EXPECT_TRUE(exchange.inform(Status::early_hints));
    EXPECT_EQ(exchange.upgrade("websocket").error(), std::errc::protocol_error);
    exchange.respond("hello\n");
  };
  const auto answer = ask();
  EXPECT_THAT(answer.informed, ElementsAre(103));
  EXPECT_EQ(answer.body, "hello\n");
}

TEST_F(Http2Answers, WaitForFlowControlWindow) {
  const std::string text = repeated(1'000'000);
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.begin(Status::ok, {}, text.size());
    EXPECT_TRUE(kept->exchange.write(text));
    EXPECT_TRUE(kept->exchange.is_full());
  };
  const auto client = connect2(Windows::by_hand);
  const auto id = client->get("/");
  turns();
  EXPECT_EQ(client->answers[id].body.size(), 65'535u);
  EXPECT_EQ(kept->exchange.queued(), text.size() - 65'535);
  EXPECT_EQ(kept->drained, 0);
  std::size_t credited = 0;
  while (credited < text.size() && !HasFailure()) {
    const std::size_t arrived = client->answers[id].body.size();
    ASSERT_GT(arrived, credited);
    client->credit(id, arrived - std::exchange(credited, arrived));
    turns(4);
  }
  EXPECT_EQ(kept->drained, 1);
  kept->exchange.end();
  turns();
  EXPECT_EQ(client->answers[id].body, text);
  EXPECT_TRUE(kept->is_closed && !kept->error && client->answers[id].is_ended);
}

// No other event of the connection would send it.
TEST_F(Http2Answers, ResponseResumedWhileAnotherDrainsIsSent) {
  std::vector<std::unique_ptr<Kept>> kept;
  on_request = [&](Exchange exchange) {
    kept.push_back(std::make_unique<Kept>(std::move(exchange)));
  };
  const auto client = connect2(Windows::by_hand, {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 240'000}});
  nghttp2_session_set_local_window_size(client->session(), 0, 0, 1'000'000);
  client->get("/long");
  const auto other = client->get("/other");
  turns();
  kept[1]->exchange.begin(Status::ok);
  kept[0]->when_drained = [&] { kept[1]->exchange.write("hello"); };
  kept[0]->exchange.begin(Status::ok);
  kept[0]->exchange.write(repeated(300'000));
  turns();
  EXPECT_EQ(client->answers[other].body, "hello");
}

TEST_F(Http2Answers, AreSentByUrgency) {
  std::vector<std::string> asked;
  on_request = [](Exchange exchange) { exchange.respond(repeated(300'000)); };
  const auto client = connect2(Windows::by_hand);
  const auto idle = client->get("/", {{"priority", "u=7"}});
  const auto urgent = client->get("/", {{"priority", "u=0"}});
  turns();
  EXPECT_EQ(client->answers[urgent].body.size(), 65'535u);
  EXPECT_TRUE(client->answers[idle].body.empty());
}

TEST_F(Http2Answers, MayContainFilesBetweenBytes) {
  const std::string text = repeated(200'000);
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("<");
    EXPECT_FALSE(exchange.send_file(file_of(text), 10, 150'000));
    exchange.write("|");
    EXPECT_FALSE(exchange.send_file(file_of("file"), 0, 4));
    EXPECT_EQ(exchange.send_file(-1, 0, 4), std::errc::bad_file_descriptor);
    exchange.write(">");
    exchange.end();
  };
  EXPECT_EQ(ask().body, "<" + text.substr(10, 150'000) + "|file>");
}

// A window may exceed all memory.
TEST_F(Http2Answers, FilesAreReadOnDemand) {
  const std::string text = repeated(4'000'000);
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.begin(Status::ok, {}, text.size());
    EXPECT_FALSE(kept->exchange.send_file(file_of(text), 0, text.size()));
  };
  const auto client =
      connect2(Windows::as_they_come, {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX}});
  nghttp2_session_set_local_window_size(client->session(), 0, 0, INT32_MAX);
  const auto id = client->get("/");
  client->stream().pause();
  turns();
  EXPECT_GT(kept->exchange.queued(), text.size() / 2);
  EXPECT_TRUE(kept->exchange.end());
  client->stream().resume();
  while (!client->answers[id].is_ended && !HasFailure()) {
    const std::size_t arrived = client->answers[id].body.size();
    turns();
    ASSERT_GT(client->answers[id].body.size(), arrived);
  }
  EXPECT_TRUE(client->answers[id].body == text);
}

TEST_F(Http2Answers, SlowDiskDelaysOnlyItsStream) {
  const std::string text = repeated(200'000);
  on_request = [&](Exchange exchange) {
    if (exchange.request().path() != "/slow") return (void)exchange.respond(Status::ok, "fast");
    exchange.begin(Status::ok);
    EXPECT_FALSE(exchange.send_file(file_of(text), 0, text.size()));
    exchange.end();
  };
  SlowDisk disk(SystemCall::read, 1);
  const auto client = connect2();
  const auto slow = client->get("/slow");
  const auto fast = client->get("/fast");
  turns();
  EXPECT_TRUE(works_in_pool(loop_));
  EXPECT_EQ(client->answers[fast].body, "fast");
  EXPECT_EQ(client->answers[slow].body, "");
  disk.respond();
  finish_in_pool(loop_, [this] { turns(); });
  EXPECT_TRUE(client->answers[slow].body == text);
  EXPECT_EQ(disk.calls_on_loop, 0);
}

TEST_F(Http2Answers, ResponseFromTruncatedFileIsReset) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.begin(Status::ok);
    EXPECT_FALSE(kept->exchange.send_file(file_of("file"), 0, 5));
  };
  const auto answer = ask();
  EXPECT_TRUE(answer.is_closed && !answer.is_ended);
  EXPECT_TRUE(kept->is_closed);
  EXPECT_EQ(kept->error, std::error_code(ENODATA, std::system_category()));
}

TEST_F(Http2Answers, DroppedExchangeSends500) {
  on_request = [](Exchange) {};
  EXPECT_EQ(ask().status, 500);
}

TEST_F(Http2Answers, AbandonedResponseResetsOnlyItsStream) {
  on_request = [](Exchange exchange) {
    if (exchange.request().path() == "/whole") return void(exchange.respond("hello\n"));
    exchange.begin(Status::ok);
    exchange.write("part");
  };
  const auto client = connect2();
  const auto part = client->get("/part");
  const auto whole = client->get("/whole");
  turns();
  EXPECT_TRUE(client->answers[part].is_closed && !client->answers[part].is_ended);
  EXPECT_EQ(client->answers[part].code, std::uint32_t{NGHTTP2_INTERNAL_ERROR});
  EXPECT_EQ(client->answers[whole].body, "hello\n");
}

TEST_F(Http2Answers, HaveTheirOwnDeadline) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    if (exchange.request().path() != "/late") return void(exchange.respond("hello\n"));
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.set_deadline(Nanos{2'000'000'000});
  };
  const auto client = connect2();
  const auto late = client->get("/late");
  turns();
  pass(Nanos{1'900'000'000});
  EXPECT_FALSE(kept->is_closed);
  pass(Nanos{200'000'000});
  EXPECT_EQ(kept->error, std::error_code(Error::deadline));
  EXPECT_TRUE(client->answers[late].is_closed);
  const auto other = client->get("/");
  turns();
  EXPECT_EQ(client->answers[other].body, "hello\n");
}

TEST_F(Http2Answers, WorkWithAnyService) {
  http::Router router;
  router.get("/greet/:name", [](Exchange exchange) {
    exchange.set_compression(http::Compression::by_type);
    exchange.respond(repeated(5000) + exchange.request().param("name"));
  });
  http::ServerOptions options;
  options.http2 = must(http::Http2::create());
  server_ = must(http::Server::create(loop_, router, std::move(options)));
  const auto answer = ask({{"accept-encoding", "gzip"}}, "/greet/you");
  EXPECT_EQ(answer.fields.at("content-encoding"), "gzip");
  EXPECT_EQ(answer.body.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(ask({}, "/nowhere").status, 404);
}

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

// ---- the end

class Http2Drain : public Http2ServerTest {};

TEST_F(Http2Drain, SendsGoawayFirst) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) { exchanges.push_back(std::move(exchange)); };
  const auto client = connect2();
  client->get("/1");
  turns();
  bool is_drained = false;
  server_.drain(Nanos{10'000'000'000}, [&] { is_drained = true; });
  turns();
  EXPECT_THAT(client->goaways, ElementsAre(std::pair(INT32_MAX, 0u)));
  pass(Nanos{1'100'000'000});
  EXPECT_EQ(client->goaways.size(), 2u);
  EXPECT_EQ(client->goaways.back(), std::pair(1, 0u));
  EXPECT_FALSE(is_drained);
  exchanges[0].respond("bye");
  turns();
  EXPECT_EQ(client->answers[1].body, "bye");
  EXPECT_TRUE(is_drained);
}

TEST_F(Http2Drain, ClosesIdleConnections) {
  const auto client = connect2();
  bool is_drained = false;
  server_.drain(Nanos{10'000'000'000}, [&] { is_drained = true; });
  pass(Nanos{1'100'000'000});
  EXPECT_TRUE(is_drained && client->is_ended);
}

TEST_F(Http2Drain, WaitsForUnreadBodyAfterResponse) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.pause();
  };
  const auto client = connect2();
  const auto id = client->post("/", "body");
  turns();
  kept->exchange.respond("early");
  turns();
  EXPECT_EQ(client->answers[id].body, "early");
  bool is_drained = false;
  server_.drain(Nanos{10'000'000'000}, [&] { is_drained = true; });
  pass(Nanos{1'100'000'000});
  EXPECT_FALSE(is_drained);
  kept->exchange.resume();
  turns();
  EXPECT_EQ(kept->body, "body");
  EXPECT_TRUE(is_drained);
}

TEST_F(Http2Drain, ResetsStreamsAtDeadline) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) { kept = std::make_unique<Kept>(std::move(exchange)); };
  const auto client = connect2();
  client->get("/");
  turns();
  server_.drain(Nanos{2'000'000'000});
  pass(Nanos{1'100'000'000});
  pass(Nanos{1'100'000'000});
  EXPECT_EQ(kept->error, std::error_code(Error::deadline));
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST(Http2Options, AreValidated) {
  EXPECT_EQ(http::Http2::create({.max_streams = 0}).error(), std::errc::invalid_argument);
  EXPECT_EQ(http::Http2::create({.max_streams = 10'001}).error(), std::errc::invalid_argument);
  EXPECT_EQ(http::Http2::create({.stream_window = 1023}).error(), std::errc::invalid_argument);
  EXPECT_EQ(http::Http2::create({.stream_window = 16 * 1024 * 1024 + 1}).error(),
            std::errc::invalid_argument);
  EXPECT_TRUE(http::Http2::create({.max_streams = 10'000, .stream_window = 1024}));
}

}  // namespace
}  // namespace spate::testing
