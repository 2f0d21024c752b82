// HTTP/1: a response announces whether the connection persists. In every cell of a table of
// requests and handlers, the next request is served, or the response announced the end.
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "http/harness.h"
#include "support/own_file.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct SentRequest {
  std::string_view name;
  std::string head;
  std::string body;
  bool is_expected = false;  // The client waits for 100 before it sends the body.
};

std::string chunked(const std::string& text) {
  char size[20];
  std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
  return size + text + "\r\n0\r\n\r\n";
}

std::vector<SentRequest> requests() {
  const std::string host = "POST / HTTP/1.1\r\nHost: a\r\n";
  const auto sized = [&](std::size_t size, const std::string& more = "") {
    return host + more + "Content-Length: " + std::to_string(size) + "\r\n\r\n";
  };
  const std::string expect = "Expect: 100-continue\r\n";
  const std::string coded = "Transfer-Encoding: chunked\r\n\r\n";
  return {{"none", host + "\r\n", ""},
          {"short", sized(10), std::string(10, 'b')},
          {"at the limit", sized(262'144), std::string(262'144, 'b')},
          {"beyond the limit", sized(262'145), std::string(262'145, 'b')},
          {"long", sized(1'000'000), std::string(1'000'000, 'b')},
          {"chunked", host + coded, chunked("chunk")},
          {"long and chunked", host + coded, chunked(std::string(600'000, 'b'))},
          {"expected", sized(10, expect), std::string(10, 'b'), true},
          {"expected in chunks", host + expect + coded, chunked("chunk"), true}};
}

// Reads bodies, and responds after their end.
class Reading final : public http::ExchangeHandler {
 public:
  explicit Reading(Exchange given) : exchange(std::move(given)) {
    exchange.start(*this);
    if (!exchange.request().has_body()) exchange.respond("read\n");
  }
  void on_body(Bytes bytes) override { received += bytes.size(); }
  void on_body_end(const http::FieldsView&) override { exchange.respond("read\n"); }
  void on_closed(std::error_code why) override {
    is_closed = true;
    error = why;
  }

  Exchange exchange;
  std::size_t received = 0;
  bool is_closed = false;
  std::error_code error;
};

class Persistence : public HttpServerTest {
 protected:
  struct Handling {
    std::string_view name;
    std::function<void(Exchange)> handle;
  };
  std::vector<Handling> handlings() {
    const auto keep = [this](Exchange exchange) -> Reading& {
      return *readers_.emplace_back(std::make_unique<Reading>(std::move(exchange)));
    };
    return {
        {"answers before the body", [](Exchange exchange) { exchange.respond("early\n"); }},
        {"begins before the body",
         [](Exchange exchange) {
           exchange.begin(Status::ok);
           exchange.write("early\n");
           exchange.end();
         }},
        {"answers behind the body", [keep](Exchange exchange) { keep(std::move(exchange)); }},
        {"answers while it reads",
         [keep](Exchange exchange) { keep(std::move(exchange)).exchange.respond("early\n"); }},
        {"reads it whole",
         [](Exchange exchange) {
           http::read_body(std::move(exchange), 2'000'000,
                           [](Exchange whole, Bytes) { whole.respond("whole\n"); });
         }},
        {"finds it too long",
         [](Exchange exchange) {
           http::read_body(std::move(exchange), 3,
                           [](Exchange whole, Bytes) { whole.respond("whole\n"); });
         }},
        {"never answers", [](Exchange) {}},
        {"answers later", [this](Exchange exchange) { kept_ = std::move(exchange); }},
    };
  }

  void handle_by(const Handling& handling) {
    on_request = [&handling](Exchange exchange) {
      if (exchange.request().path() == "/next") return void(exchange.respond("next\n"));
      handling.handle(std::move(exchange));
    };
  }

  void run_cell(const SentRequest& request, bool is_pipelined) {
    const std::string next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    const auto client = connect();
    client->send(request.head);
    turns();
    const bool may_send = !request.is_expected || client->received.starts_with("HTTP/1.1 100 ");
    if (may_send && is_pipelined) client->send(request.body + next);
    if (may_send && !is_pipelined) client->send(request.body);
    turns(100);
    if (kept_.is_open()) kept_.respond("late\n");
    turns(100);
    const bool announces_end = client->received.contains("Connection: close\r\n");
    if (!is_pipelined && !announces_end) client->send(next);
    turns(100);
    EXPECT_THAT(client->received, HasSubstr("HTTP/1.1 ")) << "no response";
    if (announces_end) {
      EXPECT_THAT(client->received, Not(HasSubstr("next\n")));
      EXPECT_TRUE(client->is_ended || client->is_closed);
    } else {
      EXPECT_THAT(client->received, EndsWith("\r\n\r\nnext\n"));
      EXPECT_FALSE(client->is_ended || client->is_closed);
    }
  }

  std::vector<std::unique_ptr<Reading>> readers_;
  Exchange kept_;
};

TEST_F(Persistence, MatchesConnectionFieldInEveryCase) {
  for (const Handling& handling : handlings()) {
    handle_by(handling);
    for (const SentRequest& request : requests()) {
      for (const bool is_pipelined : {false, true}) {
        SCOPED_TRACE(std::string(handling.name) + ", body: " + std::string(request.name) +
                     (is_pipelined ? ", pipelined" : ""));
        run_cell(request, is_pipelined);
      }
    }
  }
  EXPECT_EQ(server_.metrics().exchanges, 0u);
}

TEST_F(Persistence, IsKeptAfterShortUnreadBody) {
  for (const std::string_view request :
       {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"})
    EXPECT_THAT(talk(request), Not(HasSubstr("Connection:"))) << request;
}

TEST_F(Persistence, EndsAfterUnreadBodyThatIsLongOrOfUnknownLength) {
  for (const std::string_view request :
       {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 262145\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"})
    EXPECT_THAT(talk(request), HasSubstr("Connection: close\r\n")) << request;
}

// ---- bodies after their responses

TEST_F(Persistence, BodyIsReadWholeAfterResponse) {
  const std::string close = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
  const std::string open = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string old = "POST / HTTP/1.0\r\n";
  for (const std::string& head : {close, open, old}) {
    SCOPED_TRACE(head);
    std::unique_ptr<Reading> reading;
    on_request = [&](Exchange exchange) {
      reading = std::make_unique<Reading>(std::move(exchange));
      reading->exchange.begin(Status::ok);
      reading->exchange.write("early\n");
      reading->exchange.end();
    };
    const auto client = connect();
    client->send(head + "Content-Length: 300000\r\n\r\n" + std::string(100'000, 'b'));
    turns(50);
    EXPECT_THAT(client->received, HasSubstr("early\n"));
    EXPECT_FALSE(reading->is_closed);
    client->send(std::string(200'000, 'b'));
    turns(50);
    EXPECT_EQ(reading->received, 300'000u);
    EXPECT_TRUE(reading->is_closed);
    EXPECT_FALSE(reading->error) << reading->error.message();
    EXPECT_TRUE(client->is_ended);
  }
}

TEST_F(Persistence, TruncatedBodyAfterResponseIsReported) {
  Reading* reading = nullptr;
  on_request = [&](Exchange exchange) {
    reading = readers_.emplace_back(std::make_unique<Reading>(std::move(exchange))).get();
    reading->exchange.respond("early\n");
  };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\nbegin");
  turns();
  client->stream().end();
  turns();
  EXPECT_TRUE(reading->is_closed);
  EXPECT_EQ(reading->error, std::errc::connection_reset);
}

TEST_F(Persistence, TooLongBodyIsRefusedBeforeItArrives) {
  int calls = 0;
  on_request = [&](Exchange exchange) {
    http::read_body(std::move(exchange), 9, [&](Exchange, Bytes) { ++calls; });
  };
  for (const std::string_view more : {"", "Expect: 100-continue\r\n"}) {
    const std::string answer =
        talk("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(more) + "Content-Length: 10\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 ")) << more;
    EXPECT_EQ(answer.contains("Connection: close\r\n"), !more.empty());
  }
  EXPECT_EQ(calls, 0);
}

// The idle timeout applies between requests.
TEST_F(Persistence, IdleTimeoutDoesNotApplyToOpenExchange) {
  on_request = [&](Exchange exchange) {
    http::read_body(std::move(exchange), 9,
                    [&](Exchange whole, Bytes) { kept_ = std::move(whole); });
  };
  const auto client = connect();
  client->send(kGet);
  for (int i = 0; i < 100; ++i) pass(kSecond);
  ASSERT_TRUE(kept_.is_open());
  kept_.respond("late\n");
  turns();
  EXPECT_THAT(client->received, EndsWith("late\n"));
  pass(59 * kSecond);
  EXPECT_FALSE(client->is_closed || client->is_ended);
  pass(2 * kSecond);
  EXPECT_TRUE(client->is_closed || client->is_ended);
}

// ---- tunnels, and framing before bytes

TEST_F(Persistence, TunnelRequiresUpgrade) {
  const std::string connect_to = "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n";
  for (const bool is_whole : {true, false}) {
    int requests = 0;
    on_request = [&](Exchange exchange) {
      ++requests;
      if (is_whole) return void(exchange.respond("inside\n"));
      exchange.begin(Status::accepted);
      exchange.end();
    };
    const std::string answer = talk(connect_to + "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 501 "));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_EQ(requests, 1);
  }
  on_request = [](Exchange exchange) { exchange.respond(Status::forbidden); };
  EXPECT_THAT(talk(connect_to), StartsWith("HTTP/1.1 403 "));
}

TEST_F(Persistence, ChunkedResponseSurvivesFileThatCannotBeSent) {
  on_request = [](Exchange exchange) {
    exchange.begin(Status::ok);
    EXPECT_EQ(exchange.send_file(-1, 0, 5), std::errc::bad_file_descriptor);
    EXPECT_EQ(exchange.send_file(1'000'000, 0, 5), std::errc::bad_file_descriptor);
    EXPECT_EQ(exchange.send_file(0, std::uint64_t{1} << 63, 5), std::errc::invalid_argument);
    exchange.write("x");
    exchange.end();
  };
  EXPECT_THAT(talk(kGet), EndsWith("\r\n\r\n1\r\nx\r\n0\r\n\r\n"));
}

// The response must stay complete, or the connection be reset.
TEST_F(Persistence, ChunkedResponseSurvivesOutOfMemory) {
  const OwnFile file("chunk", std::string(10'000, 'f'));
  for (const bool is_file : {true, false}) {
    for (std::uint64_t nth = 1; nth <= 6; ++nth) {
      SCOPED_TRACE(nth);
      bool is_sent = false;
      on_request = [&](Exchange exchange) {
        exchange.begin(Status::ok);
        Buffer bytes;
        bytes.append(bytes_of(std::string(10'000, 'f')));
        const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
        {
          FaultPlan plan;
          plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
          const FaultScope scope(plan);
          is_sent = is_file ? !exchange.send_file(fd, 0, 10'000) : exchange.write(std::move(bytes));
        }
        if (!is_file || !is_sent) ::close(fd);
        exchange.write("x");
        exchange.end();
      };
      const auto client = connect();
      client->send(kGet);
      turns();
      const std::string chunk = "2710\r\n" + std::string(is_sent ? 10'000 : 0, 'f');
      if (is_sent) {
        EXPECT_THAT(client->received, EndsWith(chunk + "\r\n1\r\nx\r\n0\r\n\r\n"));
      } else if (client->received.ends_with("0\r\n\r\n")) {
        EXPECT_THAT(client->received, EndsWith("\r\n\r\n1\r\nx\r\n0\r\n\r\n"));
      } else {
        EXPECT_TRUE(client->is_closed);
        EXPECT_THAT(client->received, Not(HasSubstr("1\r\nx")));
      }
    }
  }
}

}  // namespace
}  // namespace spate::testing
