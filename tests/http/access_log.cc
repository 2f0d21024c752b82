// The access log: each field of a record, when it is called, and that it may destroy the server.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "http/http2_harness.h"

namespace spate::testing {
namespace {

using http::AccessRecord;
using http::Exchange;
using http::Status;

constexpr Status kNone{499};

struct Line {
  std::string method;
  std::string target;
  Status status;
  std::uint64_t sent;
  std::uint64_t received;
  Nanos duration;
  std::error_code error;
  Address peer;
};

class AccessLog : public Http2ServerTest {
 protected:
  AccessLog() {
    serve_logged([this](const AccessRecord& record) {
      EXPECT_FALSE(is_inside_) << "called from inside a call";
      lines_.push_back({.method = std::string(record.request.method_name()),
                        .target = std::string(record.request.target()),
                        .status = record.status,
                        .sent = record.sent,
                        .received = record.received,
                        .duration = record.duration,
                        .error = record.error,
                        .peer = record.request.peer()});
    });
  }

  void serve_logged(std::function<void(const AccessRecord&)> log) {
    http::ServerOptions options;
    options.log = std::move(log);
    serve2(std::move(options));
  }

  template <class Function>
  void inside(Function function) {
    is_inside_ = true;
    function();
    is_inside_ = false;
  }
  Line last() {
    turns();
    if (lines_.empty()) {
      ADD_FAILURE() << "nothing was logged";
      return {};
    }
    return lines_.back();
  }
  // Sends another response first, whose memory must not show in the next one.
  void answer_another() {
    on_request = [](Exchange exchange) { exchange.respond(Status::not_found, "no such thing"); };
    talk("GET /other HTTP/1.1\r\nHost: a\r\n\r\n");
    lines_.clear();
  }
  void ask(bool is_http2, const char* path = "/a", const std::string& method = "GET") {
    if (is_http2) {
      client2_ = connect2();
      client2_->get(path, {}, method);
    } else {
      client_ = connect();
      client_->send(method + " " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    turns();
  }

  std::vector<Line> lines_;
  std::unique_ptr<RawClient> client_;
  std::unique_ptr<Http2Client> client2_;
  bool is_inside_ = false;
};

TEST_F(AccessLog, ResponseIsLoggedAsSent) {
  on_request = [](Exchange exchange) { exchange.respond(Status::created, "1234"); };
  for (const bool is_http2 : {false, true}) {
    ask(is_http2);
    const Line line = last();
    EXPECT_EQ(line.method, "GET");
    EXPECT_EQ(line.target, "/a");
    EXPECT_EQ(line.status, Status::created);
    EXPECT_EQ(line.sent, 4u);
    EXPECT_FALSE(line.error);
  }
  on_request = [](Exchange exchange) { exchange.respond("inside"); };
  talk("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
  EXPECT_EQ(last().status, Status::not_implemented);
}

TEST_F(AccessLog, Status499IsLoggedWithoutResponse) {
  for (const bool is_http2 : {false, true}) {
    answer_another();
    on_request = [this](Exchange exchange) { inside([&] { exchange.abort(); }); };
    ask(is_http2);
    EXPECT_EQ(last().status, kNone);
    EXPECT_EQ(last().error, std::errc::operation_canceled);
    EXPECT_EQ(last().target, "/a");

    answer_another();
    Exchange kept;
    on_request = [&](Exchange exchange) { kept = std::move(exchange); };
    ask(is_http2);
    is_http2 ? client2_->stream().abort() : client_->stream().abort();
    EXPECT_EQ(last().status, kNone);
    EXPECT_EQ(last().target, "/a");
    EXPECT_TRUE(last().error);
  }
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(AccessLog, TruncatedResponseIsLoggedWithItsSentBytes) {
  for (const bool is_http2 : {false, true}) {
    answer_another();
    on_request = [this](Exchange exchange) {
      exchange.begin(Status::ok);
      exchange.write("123");
      inside([&] { exchange = {}; });
    };
    ask(is_http2);
    EXPECT_EQ(last().status, Status::ok);
    EXPECT_EQ(last().sent, 3u);
    EXPECT_EQ(last().error, std::errc::operation_canceled);
    EXPECT_EQ(lines_.size(), 1u);
  }
}

TEST_F(AccessLog, UpgradesAreLogged) {
  answer_another();
  Stream stream;
  on_request = [&](Exchange exchange) {
    inside([&] { stream = must(exchange.upgrade(exchange.request()[http::FieldId::upgrade])); });
  };
  talk("GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  EXPECT_EQ(last().status, Status::switching_protocols);
  EXPECT_EQ(last().target, "/up");
  talk("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
  EXPECT_EQ(last().status, Status::ok);
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(AccessLog, DroppedBytesAreNotCounted) {
  const std::function<void(Exchange)> responses[] = {
      [](Exchange exchange) { exchange.respond("123"); },
      [](Exchange exchange) {
        Buffer body;
        EXPECT_TRUE(body.append("123"));
        exchange.respond(Status::ok, http::Fields(), std::move(body));
      },
      [](Exchange exchange) {
        exchange.begin(Status::ok);
        exchange.write("123");
        exchange.write(Buffer());
        exchange.end();
      }};
  for (const auto& response : responses) {
    for (const bool is_http2 : {false, true}) {
      on_request = response;
      ask(is_http2, "/a", "HEAD");
      EXPECT_EQ(last().method, "HEAD");
      EXPECT_EQ(last().status, Status::ok);
      EXPECT_EQ(last().sent, 0u);
      lines_.clear();
    }
  }
  EXPECT_EQ(server_.metrics().sent, 0u);
}

TEST_F(AccessLog, CountsBody) {
  on_request = [](Exchange exchange) {
    http::read_body(std::move(exchange), 100, [](Exchange whole, Bytes) { whole.respond("x"); });
  };
  talk("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345");
  EXPECT_EQ(last().received, 5u);
}

// The loop's own time stands still meanwhile.
TEST_F(AccessLog, DurationIncludesSynchronousHandlerTime) {
  on_request = [this](Exchange exchange) {
    clock_.advance(Nanos{7'000'000});
    exchange.respond("x");
  };
  for (const bool is_http2 : {false, true}) {
    ask(is_http2);
    EXPECT_EQ(last().duration, Nanos{7'000'000});
  }
  lines_.clear();
  talk(std::string(kGet) + std::string(kGet));
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[1].duration, Nanos{7'000'000});
}

TEST_F(AccessLog, PeerOfClosedConnectionIsLogged) {
  const Address here = must(server_.listen(Address::loopback_ipv4(0)));
  for (const bool aborts : {true, false}) {
    lines_.clear();
    Exchange kept;
    on_request = [&](Exchange exchange) { kept = std::move(exchange); };
    struct Client final : StreamHandler {
      std::size_t on_data(Bytes bytes) override { return bytes.size(); }
      void on_closed(std::error_code) override {}
    } client;
    Stream stream;
    ASSERT_FALSE(stream.connect(loop_, here, client));
    stream.write(kGet);
    for (int i = 0; i < 1000 && !kept.is_open(); ++i) loop_.run(Run::once);
    ASSERT_TRUE(kept.is_open());
    const Address peer = stream.local_address();
    if (aborts) {
      inside([&] { kept.abort(); });
    } else {
      stream.abort();
    }
    for (int i = 0; i < 1000 && lines_.empty(); ++i) loop_.run(Run::once);
    EXPECT_EQ(last().peer, peer);
  }
}

TEST_F(AccessLog, MalformedHeaderSectionIsLoggedAsEmptyRequest) {
  talk("BROKEN\r\n\r\n");
  EXPECT_EQ(last().status, Status::bad_request);
  EXPECT_EQ(last().method, "");
  EXPECT_EQ(last().target, "");
}

// ---- destroying the server inside

enum class End { at_once, later, aborted, dropped, cut, upgraded, gone, refused, too_long };

void PrintTo(End end, std::ostream* out) {
  constexpr const char* kNames[] = {"at_once",  "later", "aborted", "dropped", "cut",
                                    "upgraded", "gone",  "refused", "too_long"};
  *out << kNames[static_cast<std::size_t>(end)];
}

class Handler final : public http::ExchangeHandler {
 public:
  void on_closed(std::error_code) override { ++closed; }
  int closed = 0;
};

class LogDestroysServer : public AccessLog,
                          public ::testing::WithParamInterface<std::tuple<bool, End>> {
 protected:
  bool is_http2() const { return std::get<0>(GetParam()); }
  End how() const { return std::get<1>(GetParam()); }

  void handle(Exchange exchange) {
    exchange.start(handler_);
    switch (how()) {
      case End::at_once:
        exchange.respond("x");
        kept_ = std::move(exchange);
        return;
      case End::aborted:
        return exchange.abort();
      case End::dropped:
        return;
      case End::cut:
        exchange.begin(Status::ok);
        return;
      case End::upgraded: {
        const auto protocol = is_http2() ? "echo" : exchange.request()[http::FieldId::upgrade];
        if (auto stream = exchange.upgrade(protocol)) stream_ = std::move(*stream);
        return;
      }
      default:
        kept_ = std::move(exchange);
    }
  }
  void ask_for_end() {
    if (is_http2()) {
      client2_ = connect2();
      if (how() == End::upgraded) {
        client2_->begin({{":method", "CONNECT"},
                         {":protocol", "echo"},
                         {":scheme", "http"},
                         {":path", "/"},
                         {":authority", "a"}},
                        true);
      } else if (how() == End::refused) {
        client2_->get("/" + std::string(9000, 'x'));
      } else if (how() == End::too_long) {
        client2_->post("/", std::string(100, 'x'));
      } else {
        client2_->get("/");
      }
    } else {
      client_ = connect();
      const std::string more = how() == End::upgraded ? "Connection: upgrade\r\nUpgrade: echo\r\n"
                               : how() == End::too_long ? "Content-Length: 100\r\n"
                                                        : "";
      client_->send((how() == End::refused ? "GET\r\n" : "GET / HTTP/1.1\r\nHost: a\r\n") + more +
                    "\r\n" + (how() == End::too_long ? std::string(100, 'x') : ""));
    }
    turns();
    if (how() == End::later) kept_.respond("x");
    if (how() == End::gone) is_http2() ? client2_->stream().abort() : client_->stream().abort();
    turns();
  }

  Handler handler_;
  Exchange kept_;
  Stream stream_;
};

TEST_P(LogDestroysServer, NoCallFollowsDestruction) {
  int logged = 0;
  std::string told;
  http::ServerOptions options;
  options.max_body = 50;
  // Long enough for the heap: the sanitizer detects a function that is destroyed while it runs.
  options.log = [this, &logged, &told, text = std::string(100, 't')](const AccessRecord& record) {
    const std::string target(record.request.target());  // The server owns the record.
    server_ = {};
    told = text + target;
    ++logged;
    EXPECT_FALSE(kept_.respond("again"));
    if (how() == End::later) kept_ = {};
  };
  serve2(std::move(options));
  on_request = [this](Exchange exchange) { handle(std::move(exchange)); };
  ask_for_end();
  EXPECT_EQ(logged, 1);
  EXPECT_EQ(told.substr(0, 100), std::string(100, 't'));
  EXPECT_EQ(handler_.closed, 0);
}

std::string name_of_end(const ::testing::TestParamInfo<std::tuple<bool, End>>& info) {
  const auto [is_http2, end] = info.param;
  return std::string(is_http2 ? "Http2_" : "Http1_") + ::testing::PrintToString(end);
}
INSTANTIATE_TEST_SUITE_P(
    EveryEnd, LogDestroysServer,
    ::testing::Combine(::testing::Bool(),
                       ::testing::Values(End::at_once, End::later, End::aborted, End::dropped,
                                         End::cut, End::upgraded, End::gone, End::refused,
                                         End::too_long)),
    name_of_end);

// The request callback is destroyed with the server, but not while it runs.
TEST_F(AccessLog, ServerMayBeDestroyedInRequestCallback) {
  for (const bool is_http2 : {false, true}) {
    std::string told;
    http::ServerOptions options;
    options.http2 = must(http::Http2::create());
    serve([this, &told, text = std::string(100, 't')](Exchange) {
      server_ = {};
      told = text;
    }, std::move(options));
    ask(is_http2);
    EXPECT_EQ(told, std::string(100, 't'));
  }
}

}  // namespace
}  // namespace spate::testing
