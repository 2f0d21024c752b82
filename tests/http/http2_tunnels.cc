// Streams of HTTP/2 that become tunnels: upgrades by extended CONNECT, WebSockets on them, CONNECT.
#include <string>
#include <vector>

#include "http/gateway_harness.h"
#include "http/http2_harness.h"
#include "http/websocket_harness.h"
#include "streams/harness.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using ::testing::ElementsAre;

class Http2Tunnels : public Http2ServerTest {
 protected:
  // The user's end of the tunnel, once it is open.
  struct End {
    explicit End(Stream given) : stream(std::move(given)) {
      stream.set_half_open(true);
      stream.start(recorder);
    }
    Recorder recorder;
    Stream stream;
  };

  Http2Tunnels() {
    on_request = [this](Exchange exchange) { accept(std::move(exchange)); };
  }

  void accept(Exchange exchange, std::string_view protocol = "talk") {
    Result<Stream> stream = exchange.upgrade(protocol);
    error_ = stream ? std::error_code() : stream.error();
    if (stream)
      end_ = std::make_unique<End>(std::move(*stream));
    else
      exchange.respond(Status::bad_request);
  }

  static Http2Client::Fields ask(std::string protocol = "talk", Http2Client::Fields more = {}) {
    Http2Client::Fields head = {{":method", "CONNECT"},
                                {":protocol", std::move(protocol)},
                                {":scheme", "http"},
                                {":authority", "a"},
                                {":path", "/talk?now"}};
    head.insert(head.end(), more.begin(), more.end());
    return head;
  }

  // Opens a tunnel, and runs until the client has the response.
  void open(Windows windows = Windows::as_they_come) {
    client_ = connect2(windows);
    id_ = client_->begin(ask(), true);
    turns();
    ASSERT_NE(end_, nullptr);
    ASSERT_EQ(answer().status, 200);
  }
  void send(std::string_view text, bool is_last = false) { client_->write(id_, text, is_last); }
  Http2Client::Answer& answer() { return client_->answers[id_]; }
  std::string& received() { return end_->recorder.received; }

  std::unique_ptr<Http2Client> client_;
  std::int32_t id_ = 0;
  std::unique_ptr<End> end_;
  std::error_code error_;
};

TEST_F(Http2Tunnels, AreRequestedAsInHttp1) {
  std::string seen;
  on_request = [&](Exchange exchange) {
    const http::Request& request = exchange.request();
    seen = std::string(request.method_name()) + " " + std::string(request.path()) + " " +
           std::string(request.host()) + " " + std::string(request[http::FieldId::upgrade]) + " " +
           std::string(request["x"]);
    EXPECT_FALSE(request.has_body());
    EXPECT_EQ(request.version(), http::Version::http_2);
    accept(std::move(exchange));
  };
  client_ = connect2();
  id_ = client_->begin(ask("talk", {{"x", "y"}}), true);
  turns();
  EXPECT_EQ(seen, "GET /talk a talk y");
  EXPECT_EQ(answer().status, 200);
  EXPECT_EQ(answer().fields.count("upgrade"), 0u);
  EXPECT_EQ(server_.metrics().exchanges, 0u);
}

TEST_F(Http2Tunnels, CarryBytesBothWays) {
  open();
  send("there");
  end_->stream.write("back");
  turns();
  EXPECT_EQ(received(), "there");
  EXPECT_EQ(answer().body, "back");
  send(" and again");
  end_->stream.write(" and again");
  turns();
  EXPECT_EQ(received(), "there and again");
  EXPECT_EQ(answer().body, "back and again");
}

TEST_F(Http2Tunnels, CarryDataSentBeforeAcceptance) {
  std::vector<Exchange> waiting;
  on_request = [&](Exchange exchange) { waiting.push_back(std::move(exchange)); };
  client_ = connect2();
  id_ = client_->begin(ask(), true);
  send("early", true);
  turns();
  accept(std::move(waiting.front()));
  turns();
  EXPECT_EQ(received(), "early");
  EXPECT_EQ(end_->recorder.log, "end ");
  end_->stream.write("late");
  turns();
  EXPECT_EQ(answer().body, "late");
}

TEST_F(Http2Tunnels, CloseEachDirectionSeparately) {
  open();
  send("last", true);
  turns();
  EXPECT_EQ(received(), "last");
  EXPECT_EQ(end_->recorder.log, "end ");
  EXPECT_FALSE(answer().is_ended);
  end_->stream.write("mine");
  end_->stream.end();
  turns();
  EXPECT_EQ(answer().body, "mine");
  EXPECT_TRUE(answer().is_closed);
  EXPECT_EQ(answer().code, std::uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_EQ(end_->recorder.closed_calls, 1);
  EXPECT_FALSE(end_->recorder.error);
  on_request = [](Exchange exchange) { exchange.respond("next"); };
  const auto id = client_->get("/");
  turns();
  EXPECT_EQ(client_->answers[id].body, "next");
}

TEST_F(Http2Tunnels, MayBeHalfClosedByServer) {
  open();
  end_->stream.end();
  turns();
  EXPECT_TRUE(answer().is_ended);
  EXPECT_FALSE(answer().is_closed);
  send("still", true);
  turns();
  EXPECT_EQ(received(), "still");
  EXPECT_EQ(end_->recorder.closed_calls, 1);
  EXPECT_FALSE(end_->recorder.error);
}

TEST_F(Http2Tunnels, AreResetByClient) {
  open();
  client_->reset(id_);
  turns();
  EXPECT_EQ(end_->recorder.error, std::errc::connection_reset);
  EXPECT_FALSE(client_->is_closed);
}

TEST_F(Http2Tunnels, AreResetWithConnection) {
  open();
  client_->stream().abort();
  turns();
  EXPECT_EQ(end_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Http2Tunnels, AreResetAtEndOfConnection) {
  open();
  client_->stream().end();
  turns();
  EXPECT_EQ(end_->recorder.error, std::errc::connection_reset);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Http2Tunnels, AreResetWithServer) {
  open();
  server_ = {};
  turns();
  EXPECT_EQ(end_->recorder.error, std::errc::connection_reset);
}

TEST_F(Http2Tunnels, AreResetByTheirOwner) {
  open();
  end_->stream.abort();
  turns();
  EXPECT_TRUE(answer().is_closed);
  EXPECT_EQ(answer().code, std::uint32_t{NGHTTP2_CANCEL});
  EXPECT_FALSE(client_->is_closed);
}

TEST_F(Http2Tunnels, AreClosedByTheirOwner) {
  open();
  end_->stream.write("bye");
  end_.reset();
  turns();
  EXPECT_EQ(answer().body, "bye");
  EXPECT_TRUE(answer().is_ended);
  send("to nobody", true);
  turns();
  EXPECT_TRUE(answer().is_closed);
  EXPECT_EQ(answer().code, std::uint32_t{NGHTTP2_NO_ERROR});
}

TEST_F(Http2Tunnels, StreamOfDestroyedOwnerIsResetAfterTimeout) {
  open();
  end_.reset();
  turns();
  for (int i = 0; i < 62; ++i) pass(kSecond);
  EXPECT_TRUE(answer().is_closed);
  EXPECT_EQ(answer().code, std::uint32_t{NGHTTP2_CANCEL});
}

TEST_F(Http2Tunnels, HaveNoIdleTimeout) {
  open();
  for (int i = 0; i < 300; ++i) pass(kSecond);
  send("awake");
  turns();
  EXPECT_EQ(received(), "awake");
}

TEST_F(Http2Tunnels, ApplyBackPressureToClient) {
  open();
  end_->stream.pause();
  const std::string much(4'000'000, 'x');
  send(much);
  turns(200);
  EXPECT_GT(answer().unsent.size(), 3'000'000u);
  end_->stream.resume();
  turns(2000);
  EXPECT_EQ(answer().unsent.size(), 0u);
  EXPECT_EQ(received(), much);
}

TEST_F(Http2Tunnels, ApplyBackPressureToOwner) {
  open(Windows::by_hand);
  const std::string much(1'000'000, 'y');
  end_->stream.write(much);
  turns(200);
  EXPECT_TRUE(end_->stream.is_full());
  EXPECT_LE(answer().body.size(), 65'535u);
  std::size_t credited = 0;
  while (answer().body.size() < much.size()) {
    const std::size_t before = answer().body.size();
    ASSERT_GT(before, credited);
    client_->credit(id_, before - std::exchange(credited, before));
    turns(50);
  }
  EXPECT_EQ(answer().body, much);
  EXPECT_FALSE(end_->stream.is_full());
}

TEST_F(Http2Tunnels, MayBeRefused) {
  on_request = [&](Exchange exchange) { accept(std::move(exchange), "other"); };
  client_ = connect2();
  id_ = client_->begin(ask(), true);
  turns();
  EXPECT_EQ(error_, std::errc::protocol_error);
  EXPECT_EQ(answer().status, 400);
  EXPECT_TRUE(answer().is_ended);
  pass(kSecond);
  pass(kSecond);  // The client may use up its window before.
  EXPECT_TRUE(answer().is_closed);
}

TEST_F(Http2Tunnels, RequireRequestForUpgrade) {
  client_ = connect2();
  id_ = client_->get("/");
  turns();
  EXPECT_EQ(error_, std::errc::protocol_error);
  EXPECT_EQ(answer().status, 400);
}

// A 200 would announce a tunnel.
TEST_F(Http2Tunnels, Respond501IfServiceDoesNotUpgrade) {
  on_request = [](Exchange exchange) { exchange.respond("a page"); };
  client_ = connect2();
  id_ = client_->begin(ask(), true);
  turns();
  EXPECT_EQ(answer().status, 501);
  EXPECT_EQ(answer().body, "a page");
  pass(kSecond);
  pass(kSecond);  // The client may use up its window before.
  EXPECT_TRUE(answer().is_closed);
}

TEST_F(Http2Tunnels, RejectFieldsSetByServer) {
  on_request = [&](Exchange exchange) {
    http::Fields fields;
    fields.set(http::FieldId::connection, "close");
    error_ = exchange.upgrade("talk", fields).error();
    exchange.respond(Status::ok);
  };
  client_ = connect2();
  id_ = client_->begin(ask(), true);
  turns();
  EXPECT_EQ(error_, std::errc::invalid_argument);
  EXPECT_EQ(answer().status, 501);
}

TEST_F(Http2Tunnels, SupportPlainConnect) {
  on_request = [&](Exchange exchange) {
    EXPECT_EQ(exchange.request().target(), "db:5432");
    accept(std::move(exchange), "");
  };
  client_ = connect2();
  id_ = client_->begin({{":method", "CONNECT"}, {":authority", "db:5432"}}, true);
  turns();
  ASSERT_NE(end_, nullptr);
  EXPECT_EQ(answer().status, 200);
  send("query");
  end_->stream.write("rows");
  turns();
  EXPECT_EQ(received(), "query");
  EXPECT_EQ(answer().body, "rows");
}

// Each side writes, ends, pauses and resets at random. The received bytes are a prefix of the sent
// ones, and all of them if neither side was reset.
TEST_F(Http2Tunnels, LoseNothing) {
  for (const std::uint64_t seed : seeds(200)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    end_.reset();
    open();
    std::string there, back;
    bool is_reset = false, has_ended = false, have_we_ended = false;
    for (int step = 0; step < 60 && !is_reset; ++step) {
      const std::string piece(random.below(random.below(10) == 0 ? 100'000 : 300), char(step));
      switch (random.below(8)) {
        case 0:
        case 1:
          if (!has_ended) there += piece, send(piece);
          break;
        case 2:
        case 3:
          if (!have_we_ended && end_->stream.write(piece)) back += piece;
          break;
        case 4:
          random.below(2) == 0 ? end_->stream.pause() : end_->stream.resume();
          break;
        case 5:
          turns(static_cast<int>(random.below(5)));
          break;
        case 6:
          if (random.below(10) != 0) break;
          if (!std::exchange(has_ended, true)) send("", true);
          if (!std::exchange(have_we_ended, true)) end_->stream.end();
          break;
        default:
          if (random.below(20) != 0) break;
          is_reset = true;
          random.below(2) == 0 ? client_->reset(id_) : end_->stream.abort();
      }
    }
    end_->stream.resume();
    if (!is_reset && !has_ended) send("", true);
    if (!is_reset && !have_we_ended) end_->stream.end();
    turns(600);
    EXPECT_TRUE(there.starts_with(received()));
    EXPECT_TRUE(back.starts_with(answer().body));
    EXPECT_TRUE(answer().is_closed);
    if (is_reset) continue;
    EXPECT_EQ(received().size(), there.size());
    EXPECT_EQ(answer().body.size(), back.size());
    EXPECT_FALSE(end_->recorder.error);
  }
}

// ---- WebSockets

class Http2WebSockets : public Http2Tunnels {
 protected:
  Http2WebSockets() {
    on_request = [this](Exchange exchange) {
      auto socket = http::WebSocket::accept(std::move(exchange), party_);
      error_ = socket ? std::error_code() : socket.error();
      if (socket) party_.socket = std::move(*socket);
    };
  }

  void ask_for_one(Http2Client::Fields more = {{"sec-websocket-version", "13"}}) {
    client_ = connect2();
    id_ = client_->begin(ask("websocket", std::move(more)), true);
    turns();
  }

  Party party_;
};

TEST_F(Http2WebSockets, ExchangeMessages) {
  ask_for_one();
  EXPECT_EQ(answer().status, 200);
  EXPECT_EQ(answer().fields.count("sec-websocket-accept"), 0u);
  send(frame({}, "hello"));
  turns();
  party_.socket.send(http::MessageKind::text, bytes_of(std::string_view("you")));
  turns();
  EXPECT_EQ(answer().body, frame({.is_masked = false}, "you"));
  send(frame({.first = 0x88}, close_text(1000, "bye")), true);
  turns();
  EXPECT_THAT(party_.told, ElementsAre("text hello", "closed 1000 bye"));
  EXPECT_TRUE(answer().is_closed);
}

TEST_F(Http2WebSockets, AreRefusedWithoutTheirVersion) {
  ask_for_one({});
  EXPECT_EQ(answer().status, 426);
  EXPECT_EQ(answer().fields["sec-websocket-version"], "13");
  EXPECT_EQ(error_, std::errc::protocol_error);
}

TEST_F(Http2WebSockets, ReceiveCloseFrameWhenServerDrains) {
  ask_for_one();
  bool is_drained = false;
  server_.drain(10 * kSecond, [&] { is_drained = true; });
  turns();
  EXPECT_EQ(answer().body, frame({.first = 0x88, .is_masked = false}, close_text(1001)));
  send(frame({.first = 0x88}, close_text(1001)), true);
  for (int i = 0; i < 5; ++i) pass(kSecond);
  EXPECT_TRUE(is_drained);
}

// ---- to an upstream that speaks HTTP/1

TEST_F(GatewayTest, ForwardsWebSocketsOfHttp2) {
  http::ServerOptions options;
  options.http2 = must(http::Http2::create());
  serve_with(std::move(options));
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  Http2Client client(std::move(mine));
  turns();
  const auto id = client.begin({{":method", "CONNECT"},
                                {":protocol", "websocket"},
                                {":scheme", "http"},
                                {":authority", "a"},
                                {":path", "/chat"},
                                {"sec-websocket-version", "13"}},
                               true);
  turns();
  ASSERT_EQ(upstreams.size(), 1u) << client.answers[id].status;
  const std::string heard = up().heard();
  EXPECT_THAT(heard, ::testing::StartsWith("GET /chat HTTP/1.1\r\n"));
  EXPECT_THAT(heard, ::testing::HasSubstr("Upgrade: websocket\r\n"));
  EXPECT_THAT(heard, ::testing::ContainsRegex("[Ss]ec-[Ww]eb[Ss]ocket-[Kk]ey: [^\r]{22}==\r\n"));
  up().answer(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
      "news");
  client.write(id, "question", false);
  turns();
  EXPECT_EQ(client.answers[id].status, 200);
  EXPECT_EQ(client.answers[id].body, "news");
  EXPECT_EQ(up().heard(), "question");
}

}  // namespace
}  // namespace spate::testing
