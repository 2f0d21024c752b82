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
