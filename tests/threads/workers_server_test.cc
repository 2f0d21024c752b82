// WorkersServer: metrics, drain and reload of an HTTP server on several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "spate/http/inspector.h"
#include "spate/http/server.h"
#include "spate/net/connect.h"
#include "support/own_loopback.h"
#include "support/tls_pair.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::WorkersServer;

// A connection that sends a request whenever ask() is called, and counts the responses.
class Visitor final : public StreamHandler {
 public:
  Visitor(Loop& loop, const Address& address) {
    connecting_ = connect(loop, address, [this](Result<Stream> made) { start(std::move(made)); });
  }
  Visitor(Loop& loop, const Address& address, const TlsContext& tls) {
    connecting_ = connect(loop, "localhost", address.port(), tls, [this](TlsResult<Stream> made) {
      if (!made) return void(is_closed = true);
      start(std::move(*made));
    });
  }
  void ask(std::string_view path = "/") {
    ++asked_;
    const std::string request = "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (!stream_.is_open()) return void(unsent_ += request);
    stream_.write(request);
  }
  std::size_t on_data(Bytes bytes) override {
    received += text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_closed = true; }
  bool is_open() const { return stream_.is_open(); }
  bool is_answered() const { return answers() == asked_; }
  int answers() const {
    int count = 0;
    for (std::size_t at = 0; (at = received.find("done\n", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }

  std::string received;
  bool is_closed = false;

 private:
  void start(Result<Stream> made) {
    if (!made) return void(is_closed = true);
    stream_ = std::move(*made);
    stream_.start(*this);
    stream_.write(std::exchange(unsent_, {}));
  }

  Connecting connecting_;
  Stream stream_;
  std::string unsent_;
  int asked_ = 0;
};

// Keeps the exchanges of "/wait" until respond(), on the thread of each.
class Waiting {
 public:
  void serve(Exchange exchange) {
    if (exchange.request().path() != "/wait") return void(exchange.respond("done\n"));
    const std::scoped_lock lock(mutex_);
    Loop* loop = &exchange.loop();
    waiting_.push_back({loop, std::make_shared<Exchange>(std::move(exchange))});
  }
  int count() {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(waiting_.size());
  }
  void respond() {
    const std::scoped_lock lock(mutex_);
    for (Entry& each : waiting_) {
      each.loop->post([exchange = std::move(each.exchange)] { exchange->respond("done\n"); });
    }
    waiting_.clear();
  }

 private:
  struct Entry {
    Loop* loop;
    std::shared_ptr<Exchange> exchange;
  };
  std::mutex mutex_;
  std::list<Entry> waiting_;
};

class HttpWorkersServer : public WorkersTest {
 protected:
  void serve(const http::ServerOptions& options = {}, const Address& address = own_address(0)) {
    server_ = must(http::serve(*workers_, address,
                               [this](Exchange exchange) { waiting_.serve(std::move(exchange)); },
                               options, {.balance = GetParam()}));
  }
  Visitor& visit(std::string_view path = "/") {
    Visitor& visitor = visitors_.emplace_back(*loop_, server_.address());
    visitor.ask(path);
    return visitor;
  }
  void run_until_answered() {
    run_until([&] {
      return std::ranges::all_of(visitors_, [](const Visitor& each) { return each.is_answered(); });
    });
  }
  // Returns when both workers wait for the latch.
  std::shared_ptr<std::latch> block_workers() {
    const auto begin = std::make_shared<std::latch>(2);
    auto end = std::make_shared<std::latch>(1);
    workers_->post_to_all([begin, end](Loop&) {
      begin->count_down();
      end->wait();
    });
    begin->wait();
    return end;
  }
  bool is_connection_refused() {
    bool is_done = false;
    std::error_code error;
    const Connecting attempt = connect(*loop_, server_.address(), [&](Result<Stream> made) {
      is_done = true;
      if (!made) error = made.error();
    });
    run_until([&] { return is_done; });
    return error == std::errc::connection_refused;
  }

  Waiting waiting_;
  std::unique_ptr<Workers> workers_ = must(Workers::create({.threads = 2}));
  WorkersServer server_;
  std::list<Visitor> visitors_;
};

// ---- metrics

TEST_P(HttpWorkersServer, MetricsAreSumOfAllWorkers) {
  serve();
  EXPECT_EQ(server_.workers(), 2u);
  EXPECT_EQ(server_.metrics().accepted, 0u);
  for (int i = 0; i < 6; ++i) visit();
  visit("/wait");
  run_until([&] { return waiting_.count() == 1; });
  run_until([&] {
    const http::ServerMetrics metrics = server_.metrics();
    return metrics.requests == 7 && metrics.exchanges == 1;
  });
  const http::ServerMetrics sum = server_.metrics();
  EXPECT_EQ(sum.connections, 7u);
  EXPECT_EQ(sum.accepted, 7u);
  EXPECT_EQ(sum.requests, 7u);
  EXPECT_EQ(server_.metrics(0).requests + server_.metrics(1).requests, 7u);
  EXPECT_EQ(server_.metrics(0).accepted, server_.metrics(0).requests);
  if (GetParam() == Balance::round_robin) EXPECT_GE(server_.metrics(1).requests, 3u);
  waiting_.respond();
  run_until_answered();
  run_until([&] { return server_.metrics().sent == 7u * 5; });
}

TEST_P(HttpWorkersServer, TotalsRemainAfterStop) {
  serve();
  visit();
  run_until_answered();
  visit("/wait");
  run_until([&] { return waiting_.count() == 1; });
  workers_->stop(0s);
  workers_.reset();
  const http::ServerMetrics metrics = server_.metrics();
  EXPECT_EQ(metrics.requests, 2u);
  EXPECT_EQ(metrics.connections, 0u);
  EXPECT_EQ(metrics.exchanges, 0u);
}

TEST_P(HttpWorkersServer, MetricsAreReadWhileWorkerIsBusy) {
  serve();
  for (int i = 0; i < 4; ++i) visit();
  run_until_answered();
  const auto end = block_workers();
  EXPECT_EQ(server_.metrics().requests, 4u);
  end->count_down();
}

// ---- drain

TEST_P(HttpWorkersServer, DrainWaitsForRunningRequests) {
  serve();
  for (int i = 0; i < 4; ++i) visit("/wait");
  visit();
  run_until([&] { return waiting_.count() == 4; });
  int done = 0;
  ASSERT_FALSE(server_.drain(30s, *loop_, [&] { ++done; }));
  run_until([&] { return is_connection_refused(); });
  EXPECT_EQ(done, 0);
  waiting_.respond();
  run_until([&] { return done > 0; });
  run_until_answered();
  for (const Visitor& each : visitors_) EXPECT_EQ(each.answers(), 1);
  EXPECT_EQ(server_.metrics().connections, 0u);
  loop_->run_for(5ms);
  EXPECT_EQ(done, 1);
  std::atomic<int> called{0};
  workers_->post_to_all([&](Loop&) { ++called; });
  run_until([&] { return called == 2; });  // The threads continue.
}

TEST_P(HttpWorkersServer, DrainResetsAtItsDeadline) {
  serve();
  Visitor& visitor = visit("/wait");
  run_until([&] { return waiting_.count() == 1; });
  bool is_done = false;
  ASSERT_FALSE(server_.drain(20ms, *loop_, [&] { is_done = true; }));
  run_until([&] { return is_done && visitor.is_closed; });
  EXPECT_EQ(visitor.received, "");
  EXPECT_EQ(server_.metrics().connections, 0u);
  waiting_.respond();
}

// The loop has nothing else to do: drain() alone keeps it running.
TEST_P(HttpWorkersServer, DrainKeepsLoopAlive) {
  serve();
  bool is_done = false;
  ASSERT_FALSE(server_.drain(30s, *loop_, [&] { is_done = true; }));
  loop_->run();
  EXPECT_TRUE(is_done);
}

TEST_P(HttpWorkersServer, AcceptedConnectionsAreServedBeforeDrain) {
  serve();
  std::vector<Stream> streams;
  const auto end = block_workers();
  for (int i = 0; i < 6; ++i) visit();
  run_until([&] {  // They are in the backlog.
    return std::ranges::all_of(visitors_, [](const Visitor& each) { return each.is_open(); });
  });
  bool is_done = false;
  ASSERT_FALSE(server_.drain(30s, *loop_, [&] { is_done = true; }));
  end->count_down();
  run_until([&] { return is_done; });
  run_until_answered();
  EXPECT_EQ(server_.metrics().accepted, 6u);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_P(HttpWorkersServer, DrainOfEndedWorkersIsDoneAtOnce) {
  serve();
  workers_->stop(0s);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(30s, *loop_, [&] { is_done = true; }));
  loop_->run();
  EXPECT_TRUE(is_done);
  server_.drain(30s);
}

TEST_P(HttpWorkersServer, DrainIsDoneWhenWorkersStop) {
  serve();
  visit("/wait");
  run_until([&] { return waiting_.count() == 1; });
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { is_done = true; }));
  workers_.reset();
  run_until([&] { return is_done; });
}

TEST_P(HttpWorkersServer, DrainMayOutliveItsLoop) {
  serve();
  visit("/wait");
  run_until([&] { return waiting_.count() == 1; });
  const auto count = std::make_shared<int>(0);
  auto other = must(Loop::create());
  ASSERT_FALSE(server_.drain(30s, *other, [count] { ++*count; }));
  other.reset();
  EXPECT_EQ(count.use_count(), 1);
  waiting_.respond();
  run_until_answered();
  run_until([&] { return server_.metrics().connections == 0; });
  EXPECT_EQ(*count, 0);
}

// ---- reload

TEST_P(HttpWorkersServer, ReloadAppliesToNewConnections) {
  serve({.server_name = "old"});
  for (int i = 0; i < 4; ++i) visit();
  run_until_answered();
  ASSERT_FALSE(server_.reload({.server_name = "new"}));
  for (int i = 0; i < 4; ++i) visit();
  for (Visitor& each : visitors_) each.ask();
  run_until_answered();
  int index = 0;
  for (const Visitor& each : visitors_) {
    const bool is_old = index++ < 4;
    EXPECT_EQ(each.received.find("Server: new\r\n") == std::string::npos, is_old);
    EXPECT_EQ(each.received.find("Server: old\r\n") != std::string::npos, is_old);
  }
  EXPECT_EQ(server_.metrics().requests, 16u);
  EXPECT_EQ(server_.metrics().connections, 8u);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(30s, *loop_, [&] { is_done = true; }));  // Old and new ones.
  run_until([&] { return is_done; });
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_P(HttpWorkersServer, TotalsRemainAfterReload) {
  serve();
  for (int i = 0; i < 5; ++i) {
    visit();
    run_until_answered();
    visitors_.clear();
    run_until([&] { return server_.metrics().connections == 0; });
    ASSERT_FALSE(server_.reload({}));
  }
  EXPECT_EQ(server_.metrics().accepted, 5u);
  EXPECT_EQ(server_.metrics().requests, 5u);
}

TEST_P(HttpWorkersServer, ReloadFailsWithInvalidOptionsAndAfterStop) {
  serve();
  EXPECT_EQ(server_.reload({.max_head = 0}), std::errc::invalid_argument);
  EXPECT_EQ(server_.reload_tls(test_client_context()), std::errc::invalid_argument);
  visit();
  run_until_answered();
  workers_->stop(0s);
  EXPECT_EQ(server_.reload({}), std::errc::operation_canceled);
}

TEST_P(HttpWorkersServer, ReloadedTlsContextIsUsedByNewConnections) {
  const Certificate stranger({.subject = "localhost", .names = {"localhost"}});
  serve({.tls = test_server_context()}, Address::loopback_ipv4(0));
  const TlsContext tls = test_client_context();
  Visitor& before = visitors_.emplace_back(*loop_, server_.address(), tls);
  before.ask();
  run_until_answered();
  ASSERT_FALSE(
      server_.reload_tls(must(TlsContext::server({.identities = {stranger.identity()}}))));
  Visitor after(*loop_, server_.address(), tls);
  run_until([&] { return after.is_closed; });  // Its root is not trusted.
  before.ask();
  run_until_answered();
  EXPECT_EQ(before.answers(), 2);
}

// ---- in an Inspector

TEST_P(HttpWorkersServer, InspectorShowsWorkersThatAreBusy) {
  serve({.measure_durations = true});
  for (int i = 0; i < 4; ++i) visit();
  run_until_answered();
  run_until([&] { return server_.metrics().exchanges == 0; });
  const auto end = block_workers();
  auto inspector = must(http::Inspector::create(*loop_, {.response_timeout = 10ms}));
  inspector.add("site", server_);
  inspector.add("workers", *workers_);
  const Address page = must(inspector.listen(Address::loopback_ipv4(0)));
  Visitor reader(*loop_, page);
  reader.ask("/metrics");
  run_until([&] { return reader.received.find("_viewers") != std::string::npos; });
  for (const unsigned worker : {0u, 1u}) {
    const std::string label = "worker=\"" + std::to_string(worker) + "\"} ";
    const std::string requests = std::to_string(server_.metrics(worker).requests);
    const auto has = [&](const std::string& line) {
      return reader.received.find('\n' + line + '\n') != std::string::npos;
    };
    EXPECT_TRUE(has("spate_http_server_requests_total{source=\"site\"," + label + requests));
    EXPECT_TRUE(has("spate_http_server_exchanges{source=\"site\"," + label + "0"));
    EXPECT_TRUE(has("spate_loop_up{source=\"workers\",loop=\"workers/" + std::to_string(worker) +
                    "\"} 0"));
  }
  end->count_down();
}

// ---- all at once

TEST_P(HttpWorkersServer, HandlesMayBeUsedOnAllThreads) {
  serve();
  std::atomic<bool> is_over{false};
  std::thread reader([&, server = server_] {
    std::uint64_t last = 0;
    while (!is_over) {
      const http::ServerMetrics metrics = server.metrics();
      EXPECT_GE(metrics.requests, last);
      EXPECT_LE(metrics.exchanges, 1000u);
      last = metrics.requests;
    }
  });
  std::thread reloader([&, server = server_] {
    while (!is_over) {
      EXPECT_FALSE(server.reload({.server_name = "again"}));
      std::this_thread::sleep_for(1ms);
    }
  });
  for (int i = 0; i < 30; ++i) {
    if (visitors_.size() > 5) visitors_.pop_front();
    for (Visitor& each : visitors_) each.ask();
    visit();
    run_until_answered();
  }
  is_over = true;
  reader.join();
  reloader.join();
  bool is_done = false;
  EXPECT_FALSE(server_.drain(30s, *loop_, [&] { is_done = true; }));
  server_.drain(20s);
  run_until([&] { return is_done; });
  EXPECT_EQ(server_.metrics().requests, server_.metrics(0).requests + server_.metrics(1).requests);
}

INSTANTIATE_TEST_SUITE_P(Balances, HttpWorkersServer,
                         ::testing::Values(Balance::reuse_port, Balance::round_robin),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace spate::testing
