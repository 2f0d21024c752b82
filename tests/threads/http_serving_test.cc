// HTTP on Workers: a server in each, drained by stop().
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "spate/error.h"
#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/http/websocket_sessions.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;

// Sends a request at once, and keeps the response.
class HttpClient final : public StreamHandler {
 public:
  HttpClient(Loop& loop, const Address& address) {
    connecting_ = connect(loop, address, [this](Result<Stream> made) {
      ASSERT_TRUE(made) << made.error().message();
      stream_ = std::move(*made);
      stream_.start(*this);
      stream_.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    });
  }
  std::size_t on_data(Bytes bytes) override {
    received += text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_closed = true; }
  bool is_answered() const { return received.ends_with("done\n"); }

  std::string received;
  bool is_closed = false;

 private:
  Connecting connecting_;
  Stream stream_;
};

struct Counts {
  std::atomic<int> services{0};
  std::atomic<int> elsewhere{0};
  std::atomic<int> waiting{0};
  std::atomic<int> closed{0};
  std::atomic<int> late{0};
};

// Responds at once, or keeps the exchange.
class Counting final : public http::Service {
 public:
  enum class Does : std::uint8_t { answer, wait };

  Counting(Counts& counts, Does what) : counts_(counts), what_(what) { ++counts_.services; }
  ~Counting() override {
    look();
    --counts_.services;
  }
  void on_request(Exchange exchange) override {
    look();
    if (what_ == Does::answer) {
      exchange.respond("done\n");
      return;
    }
    waiting_.emplace_back(counts_).exchange = std::move(exchange);
    waiting_.back().exchange.start(waiting_.back());
    ++counts_.waiting;
  }

 private:
  struct Waiting final : http::ExchangeHandler {
    explicit Waiting(Counts& to) : counts(to) {}
    void on_closed(std::error_code error) override {
      ++counts.closed;
      if (error == Error::deadline) ++counts.late;
    }
    Counts& counts;
    Exchange exchange;
  };
  void look() {
    if (std::this_thread::get_id() != thread_) ++counts_.elsewhere;
  }

  Counts& counts_;
  Does what_;
  std::list<Waiting> waiting_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

struct Endings {
  std::atomic<int> opened{0};
  std::atomic<int> answered{0};  // Closed with a close frame from both sides.
  std::atomic<int> late{0};
};

// A WebSocket of either side: records how it ends.
class Chatting : public http::WebSocketSession {
 public:
  explicit Chatting(Endings& endings) : endings_(endings) {}
  void on_open() override { ++endings_.opened; }
  void on_closed(http::CloseCode code, std::string_view, std::error_code error) override {
    if (code == http::CloseCode::going_away && !error) ++endings_.answered;
    if (error == Error::deadline) ++endings_.late;
  }

 private:
  Endings& endings_;
};

class Chat final : public http::Service {
 public:
  Chat(Loop& loop, Endings& endings) : sessions_(loop), endings_(endings) {}
  void on_request(Exchange exchange) override { sessions_.accept(std::move(exchange), endings_); }

 private:
  http::WebSocketSessions<Chatting> sessions_;
  Endings& endings_;
};

class HttpOnWorkers : public WorkersTest {
 protected:
  http::MakeService make(Counting::Does what) {
    return [this, what](Loop&) { return std::make_unique<Counting>(counts_, what); };
  }
  void ask(const Result<http::WorkersServer>& server, int count) {
    ASSERT_TRUE(server) << server.error().message();
    for (int i = 0; i < count; ++i) clients_.emplace_back(*loop_, server->address());
  }
  bool all(bool (*is)(const HttpClient&)) { return std::ranges::all_of(clients_, is); }

  std::unique_ptr<Workers> workers_ = *Workers::create({.threads = 2});
  Counts counts_;
  std::list<HttpClient> clients_;
};

TEST_F(HttpOnWorkers, EachWorkerUsesItsOwnService) {
  ask(http::serve(*workers_, Address::loopback_ipv4(0), make(Counting::Does::answer), {},
                  {.balance = Balance::round_robin}),
      4);
  run_until([&] { return all([](const HttpClient& client) { return client.is_answered(); }); });
  EXPECT_EQ(counts_.services, 2);
  workers_.reset();
  EXPECT_EQ(counts_.services, 0);
  EXPECT_EQ(counts_.elsewhere, 0);
}

TEST_F(HttpOnWorkers, EachWorkerUsesItsOwnCopy) {
  std::atomic<int> calls{0};
  ask(http::serve(*workers_, Address::loopback_ipv4(0),
                  [&calls, own = 0](Exchange exchange) mutable {
                    ++own;
                    ++calls;
                    exchange.respond(std::to_string(own) + " done\n");
                  },
                  {}, {.balance = Balance::round_robin}),
      4);
  run_until([&] { return all([](const HttpClient& client) { return client.is_answered(); }); });
  EXPECT_EQ(calls, 4);
  std::multiset<char> counts;  // Each counts its own.
  for (const HttpClient& client : clients_)
    counts.insert(client.received[client.received.size() - 7]);
  EXPECT_EQ(counts, (std::multiset<char>{'1', '1', '2', '2'}));
}

TEST_F(HttpOnWorkers, EachWorkerLogs) {
  std::atomic<int> lines{0};
  http::ServerOptions options;
  options.log = [&lines](const http::AccessRecord& record) {
    if (record.status == http::Status::ok) ++lines;
  };
  ask(http::serve(*workers_, Address::loopback_ipv4(0), make(Counting::Does::answer), options), 4);
  run_until([&] { return all([](const HttpClient& client) { return client.is_answered(); }); });
  workers_.reset();
  EXPECT_EQ(lines, 4);
}

TEST_F(HttpOnWorkers, IsDrainedByStop) {
  ask(http::serve(*workers_, Address::loopback_ipv4(0), make(Counting::Does::answer)), 4);
  run_until([&] { return all([](const HttpClient& client) { return client.is_answered(); }); });
  std::atomic<bool> is_done{false};
  bool was_whole = false;
  std::thread stopping([&] {
    was_whole = workers_->stop(30s);
    is_done = true;
  });
  run_until([&] { return is_done.load(); });
  stopping.join();
  EXPECT_TRUE(was_whole);
  EXPECT_EQ(counts_.services, 0);
  EXPECT_EQ(counts_.elsewhere, 0);
}

// The clients' loop does not run: each was sent all, and keeps its socket open.
TEST_F(HttpOnWorkers, IsDrainedThoughClientsKeepTheirSocketsOpen) {
  ask(http::serve(*workers_, Address::loopback_ipv4(0), make(Counting::Does::answer)), 4);
  run_until([&] { return all([](const HttpClient& client) { return client.is_answered(); }); });
  EXPECT_TRUE(workers_->stop(20ms));
  EXPECT_EQ(counts_.services, 0);
}

TEST_F(HttpOnWorkers, NotifiesExchangesWhenGraceExpires) {
  ask(http::serve(*workers_, Address::loopback_ipv4(0), make(Counting::Does::wait)), 4);
  run_until([&] { return counts_.waiting == 4; });
  EXPECT_FALSE(workers_->stop(20ms));
  EXPECT_EQ(counts_.closed, 4);
  EXPECT_EQ(counts_.late, 4);
  EXPECT_EQ(counts_.services, 0);
  EXPECT_EQ(counts_.elsewhere, 0);
}

class WebSocketsOnWorkers : public HttpOnWorkers {
 protected:
  void SetUp() override {
    const http::WorkersServer server = must(http::serve(
        *workers_, Address::loopback_ipv4(0),
        http::MakeService([this](Loop& loop) { return std::make_unique<Chat>(loop, theirs_); })));
    for (int i = 0; i < 4; ++i) {
      handlers_.emplace_back(ours_);
      sockets_.push_back(must(http::WebSocket::connect(
          client_, "ws://" + server.address().to_string(), handlers_.back())));
    }
    run_until([&] { return ours_.opened == 4 && theirs_.opened == 4; });
  }

  struct Handler final : Chatting {
    using Chatting::Chatting;
  };
  Endings theirs_;
  Endings ours_;
  http::Client client_ = must(http::Client::create(*loop_));
  std::list<Handler> handlers_;
  std::list<http::WebSocket> sockets_;
};

TEST_F(WebSocketsOnWorkers, AreClosedByStop) {
  std::atomic<bool> is_done{false};
  bool was_whole = false;
  std::thread stopping([&] {
    was_whole = workers_->stop(30s);
    is_done = true;
  });
  run_until([&] { return is_done && ours_.answered == 4; });
  stopping.join();
  EXPECT_TRUE(was_whole);
  EXPECT_EQ(theirs_.answered, 4);
}

TEST_F(WebSocketsOnWorkers, AreResetWhenGraceExpires) {
  EXPECT_FALSE(workers_->stop(20ms));  // No close frame is answered: our loop does not run.
  EXPECT_EQ(theirs_.late, 4);
  EXPECT_EQ(theirs_.answered, 0);
}

// ---- HTTP/2, with one engine for all threads

// Echoes requests and WebSockets.
class Echoing final : public http::Service {
 public:
  explicit Echoing(Loop& loop) : sessions_(loop) {}
  void on_request(Exchange exchange) override {
    if (!exchange.request()[http::FieldId::upgrade].empty()) {
      sessions_.accept(std::move(exchange));
      return;
    }
    http::read_body(std::move(exchange), 1'000'000, [](Exchange again, Bytes body) {
      again.respond(http::Status::ok, http::Fields(), body);
    });
  }

 private:
  struct Session : http::WebSocketSession {
    void on_message(http::MessageKind kind, Bytes bytes) override { socket().send(kind, bytes); }
    void on_closed(http::CloseCode, std::string_view, std::error_code) override {}
  };
  http::WebSocketSessions<Session> sessions_;
};

// A thread with a loop and a Client: calls, and a WebSocket beside them on one connection.
class Http2Thread final : http::WebSocketHandler {
 public:
  Http2Thread(const http::Http2& engine, std::string authority)
      : engine_(engine), authority_(std::move(authority)), thread_([this] { run(); }) {}
  ~Http2Thread() { thread_.join(); }

  static constexpr int kCalls = 20;
  static constexpr int kMessages = 50;
  std::atomic<int> answered{0};
  std::atomic<int> echoed{0};
  std::atomic<int> connections{0};
  std::atomic<bool> is_done{false};

 private:
  void run() {
    const auto loop = must(Loop::create());
    http::ClientOptions options{.max_per_origin = 1};
    options.http2 = engine_;
    options.http2_without_tls = true;
    http::Client client = must(http::Client::create(*loop, std::move(options)));
    socket_ = must(http::WebSocket::connect(client, "ws://" + authority_ + "/", *this));
    const std::string body(50'000, 'b');
    std::list<http::Call> calls;
    for (int i = 0; i < kCalls; ++i) {
      calls.push_back(client.fetch("http://" + authority_ + "/",
                                   [&](Result<http::Response> response) {
                                     answered += response && response->text() == body;
                                   },
                                   {.method = http::Method::post, .body = bytes_of(body)}));
    }
    loop->run();
    connections = static_cast<int>(client.metrics().connections);
    socket_ = {};
    is_done = true;
  }

  void on_open() override { socket_.send("again"); }
  void on_message(http::MessageKind, Bytes) override {
    ++echoed < kMessages ? static_cast<void>(socket_.send("again")) : socket_.close();
  }
  void on_closed(http::CloseCode, std::string_view, std::error_code error) override {
    EXPECT_FALSE(error) << error.message();
  }

  const http::Http2 engine_;
  const std::string authority_;
  http::WebSocket socket_;
  std::thread thread_;
};

TEST_F(HttpOnWorkers, ServesHttp2ClientsOnSeveralLoops) {
  http::ServerOptions options;
  options.http2 = must(http::Http2::create());
  const http::Http2 engine = options.http2;
  const http::WorkersServer server = must(
      http::serve(*workers_, Address::loopback_ipv4(0),
                  http::MakeService([](Loop& loop) { return std::make_unique<Echoing>(loop); }),
                  options, {.balance = Balance::round_robin}));
  std::list<Http2Thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(engine, server.address().to_string());
  run_until([&] {
    return std::ranges::all_of(threads,
                               [](const Http2Thread& each) { return each.is_done.load(); });
  });
  for (const Http2Thread& each : threads) {
    EXPECT_EQ(each.answered, Http2Thread::kCalls);
    EXPECT_EQ(each.echoed, Http2Thread::kMessages);
    EXPECT_EQ(each.connections, 1);
  }
  EXPECT_TRUE(workers_->stop(30s));
}

TEST_F(HttpOnWorkers, ConnectionsAreClosedWithoutService) {
  ask(http::serve(*workers_, Address::loopback_ipv4(0),
                  http::MakeService([](Loop&) { return std::unique_ptr<http::Service>(); })),
      2);
  run_until([&] { return all([](const HttpClient& client) { return client.is_closed; }); });
}

TEST_F(HttpOnWorkers, RejectsInvalidLimits) {
  http::ServerOptions options;
  options.max_fields = 0;
  EXPECT_EQ(http::serve(*workers_, Address::loopback_ipv4(0), make(Counting::Does::answer), options)
                .error(),
            std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
