// Responses: whole and in pieces, with and without a body, and invalid ones.
#include "http/harness.h"
#include "spate/http/fields.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Fields;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Answers : public HttpServerTest {};

std::string whole(std::string_view fields, std::string_view body) {
  return "HTTP/1.1 200 OK\r\n" + std::string(kDateLine) + std::string(fields) + "\r\n" +
         std::string(body);
}

TEST_F(Answers, ResponseIsPlainTextByDefault) {
  EXPECT_EQ(talk(kGet),
            whole("Content-Length: 6\r\nContent-Type: text/plain; charset=utf-8\r\n", "hello\n"));
  on_request = [](Exchange exchange) { exchange.respond(Status::ok, "{}", "application/json"); };
  EXPECT_EQ(talk(kGet), whole("Content-Length: 2\r\nContent-Type: application/json\r\n", "{}"));
}

TEST_F(Answers, ResponseCarriesGivenFields) {
  on_request = [](Exchange exchange) {
    Fields fields;
    fields.add("X-One", "1");
    fields.add(http::FieldId::location, "/there");
    exchange.respond(Status::found, fields);
  };
  EXPECT_EQ(talk(kGet), "HTTP/1.1 302 Found\r\n" + std::string(kDateLine) +
                            "Content-Length: 0\r\nX-One: 1\r\nLocation: /there\r\n\r\n");
}

TEST_F(Answers, ResponseHasNoBodyWhereNoneIsAllowed) {
  EXPECT_EQ(talk("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"),
            whole("Content-Length: 6\r\nContent-Type: text/plain; charset=utf-8\r\n", ""));
  on_request = [](Exchange exchange) { exchange.respond(Status::no_content, "hello"); };
  EXPECT_THAT(talk(kGet), Not(HasSubstr("hello")));
  EXPECT_THAT(talk(kGet), Not(HasSubstr("Content-Length")));
  on_request = [](Exchange exchange) { exchange.respond(Status::not_modified, "hello"); };
  EXPECT_THAT(talk(kGet), Not(HasSubstr("hello")));
}

TEST_F(Answers, ResponseWithServerFieldIsRefused) {
  for (const char* name : {"Connection", "Content-Length", "Date", "Keep-Alive", "TE",
                           "Transfer-Encoding", "Upgrade"}) {
    bool was_sent = true;
    on_request = [&](Exchange exchange) {
      Fields fields;
      fields.add(name, "1");
      was_sent = exchange.respond(Status::ok, fields) || exchange.begin(Status::ok, fields);
      exchange.respond("instead\n");
    };
    EXPECT_THAT(talk(kGet), EndsWith("instead\n")) << name;
    EXPECT_FALSE(was_sent) << name;
  }
}

TEST_F(Answers, ResponseIsSentOnce) {
  int sent = 0;
  on_request = [&](Exchange exchange) {
    sent += exchange.respond("one\n");
    sent += exchange.respond("two\n");
    sent += exchange.begin(Status::ok);
    sent += exchange.write("three\n");
    sent += exchange.end();
    EXPECT_FALSE(exchange.is_open());
  };
  EXPECT_THAT(talk(kGet), EndsWith("\r\n\r\none\n"));
  EXPECT_EQ(sent, 1);
}

TEST_F(Answers, SizedStreamedResponseIsSentUnchunked) {
  on_request = [](Exchange exchange) {
    EXPECT_TRUE(exchange.begin(Status::ok, {}, 6));
    EXPECT_TRUE(exchange.write("one"));
    EXPECT_FALSE(exchange.write("four"));  // Too much.
    EXPECT_TRUE(exchange.write("two"));
    EXPECT_TRUE(exchange.end());
  };
  EXPECT_EQ(talk(kGet), whole("Content-Length: 6\r\n", "onetwo"));
}

TEST_F(Answers, UnsizedStreamedResponseIsChunked) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("one");
    exchange.write("");
    Buffer buffer;
    buffer.append("a longer piece than that");
    exchange.write(std::move(buffer));
    Fields trailers;
    trailers.add("X-Sum", "7");
    EXPECT_TRUE(exchange.end(trailers));
  };
  EXPECT_EQ(talk(kGet),
            whole("Transfer-Encoding: chunked\r\n",
                  "3\r\none\r\n18\r\na longer piece than that\r\n0\r\nX-Sum: 7\r\n\r\n"));
}

TEST_F(Answers, UnsizedStreamedResponseEndsConnectionInHttp10) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("one");
    exchange.write("two");
    exchange.end();
  };
  const auto client = connect();
  client->send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  turns();
  EXPECT_EQ(client->received, whole("Connection: close\r\n", "onetwo"));
  EXPECT_TRUE(client->is_ended);
}

TEST_F(Answers, TooShortResponseResetsConnection) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok, {}, 6);
    exchange.write("one");
    EXPECT_FALSE(exchange.end());
  };
  const auto client = connect();
  client->send(kGet);
  turns();
  EXPECT_TRUE(client->is_closed);
  EXPECT_EQ(client->error, std::errc::connection_reset);
}

TEST_F(Answers, UnansweredRequestGetsStatus500) {
  on_request = [](Exchange) {};
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
}

TEST_F(Answers, ResponseDroppedHalfwayResetsConnection) {
  on_request = [](Exchange exchange) { exchange.begin(Status::ok); };
  const auto client = connect();
  client->send(kGet);
  turns();
  EXPECT_EQ(client->error, std::errc::connection_reset);
}

TEST_F(Answers, EarlyHintsMayPrecedeResponse) {
  on_request = [](Exchange exchange) {
    Fields fields;
    fields.add("Link", "</a.css>; rel=preload");
    EXPECT_TRUE(exchange.inform(Status::early_hints, fields));
    EXPECT_FALSE(exchange.inform(Status::ok));
    exchange.respond("x");
    EXPECT_FALSE(exchange.inform(Status::early_hints));
  };
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n"
                                     "\r\nHTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(talk("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Answers, ResponseMayBeSentLaterOutsideAnyCallback) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send("GET /a?b HTTP/1.1\r\nHost: a.example:80\r\nX-Y: z\r\n\r\n");
  turns();
  EXPECT_EQ(client->received, "");
  EXPECT_EQ(kept.request().target(), "/a?b");
  EXPECT_EQ(kept.request().path(), "/a");
  EXPECT_EQ(kept.request().query(), "b");
  EXPECT_EQ(kept.request().host(), "a.example:80");
  EXPECT_EQ(kept.request()["x-y"], "z");
  EXPECT_TRUE(kept.respond("late\n"));
  turns();
  EXPECT_THAT(client->received, EndsWith("late\n"));
  EXPECT_EQ(server_.metrics().exchanges, 0u);
  on_request = [](Exchange exchange) { exchange.respond("again\n"); };
  client->send(kGet);
  turns();
  EXPECT_THAT(client->received, EndsWith("again\n"));
}

TEST_F(Answers, PipelinedRequestsReceiveResponsesInOrder) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  const auto client = connect();
  client->send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
  for (std::size_t i = 0; i < 3; ++i) {
    turns();
    ASSERT_EQ(kept.size(), i + 1);
    EXPECT_EQ(kept.back().request().path(), "/" + std::to_string(i + 1));
    kept.back().respond(std::to_string(i + 1));
  }
  turns();
  EXPECT_EQ(server_.metrics().requests, 3u);
  EXPECT_THAT(client->received, EndsWith("\r\n\r\n3"));
}

TEST_F(Answers, ResponseClosesConnectionOnRequest) {
  const auto client = connect();
  client->send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\n");
  turns();
  EXPECT_THAT(client->received, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(client->received, EndsWith("hello\n"));
  EXPECT_TRUE(client->is_ended);
  EXPECT_EQ(server_.metrics().requests, 1u);
}

TEST_F(Answers, Http10ConnectionIsKeptAliveOnlyOnRequest) {
  auto client = connect();
  client->send("GET / HTTP/1.0\r\n\r\n");
  turns();
  EXPECT_TRUE(client->is_ended);
  client = connect();
  client->send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  turns();
  EXPECT_FALSE(client->is_ended);
  EXPECT_THAT(client->received, HasSubstr("Connection: keep-alive\r\n"));
}

TEST_F(Answers, ResponseReachesHalfClosedClient) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(kGet);
  client->stream().end();
  turns();
  EXPECT_TRUE(kept.respond("late\n"));
  turns();
  EXPECT_THAT(client->received, EndsWith("late\n"));
  EXPECT_TRUE(client->is_ended);
}

TEST_F(Answers, ResponseIsDroppedAfterClientDisconnected) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  auto client = connect();
  client->send(kGet);
  turns();
  client->stream().abort();
  turns();
  EXPECT_FALSE(kept.is_open());
  EXPECT_FALSE(kept.respond("late\n"));
  EXPECT_EQ(kept.request().path(), "/");
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Answers, ResponseIsDroppedAfterServerIsDestroyed) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(kGet);
  turns();
  server_ = {};
  EXPECT_FALSE(kept.is_open());
  EXPECT_FALSE(kept.respond("late\n"));
  turns();
  EXPECT_TRUE(client->is_closed || client->is_ended);
}

TEST_F(Answers, ServerMayBeDestroyedAfterResponding) {
  on_request = [&](Exchange exchange) {
    exchange.respond("last\n");
    server_ = {};
  };
  EXPECT_THAT(talk(std::string(kGet) + std::string(kGet)), EndsWith("last\n"));
}

}  // namespace
}  // namespace spate::testing
