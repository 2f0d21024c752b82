// WorkersServer of serve<T>(workers, ...): connections, close and drain.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "spate/net/server.h"
#include "spate/net/tls.h"
#include "support/own_loopback.h"
#include "threads/workers_harness.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

// Shared by the sessions of all workers.
struct GuestBook {
  std::atomic<int> opened{0};
  std::atomic<int> drained{0};
  std::atomic<int> late{0};            // Closed with Error::deadline.
  std::atomic<bool> must_leave{true};  // on_drain() ends the session.
};

class Lodger : public Session {
 public:
  explicit Lodger(GuestBook& book) : book_(book) {}
  void on_open() override { ++book_.opened; }
  std::size_t on_data(Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
  void on_drain() override {
    ++book_.drained;
    if (book_.must_leave) stream().end();
  }
  void on_closed(std::error_code error) override { book_.late += error == Error::deadline; }

 private:
  GuestBook& book_;
};

class SessionServers : public WorkersTest {
 protected:
  WorkersServer serve_lodgers() {
    return must(
        spate::serve<Lodger>(*workers_, own_address(0), {.balance = GetParam()}, std::ref(book_)));
  }
  // Connects so many clients, and waits until they are served.
  void visit(const WorkersServer& server, int count) {
    const int before = echoed_;
    for (int i = 0; i < count; ++i) clients_.emplace_back(*loop_, server.address(), echoed_);
    run_until([&] { return echoed_ == before + count; });
  }
  std::error_code connect_error(const Address& address) {
    std::optional<std::error_code> error;
    const Connecting attempt = connect(*loop_, address, [&](const Result<Stream>& made) {
      error = made ? std::error_code() : made.error();
    });
    run_until([&] { return error.has_value(); });
    return error.value_or(std::error_code());
  }
  int open_clients() const {
    return static_cast<int>(
        std::ranges::count_if(clients_, [](const Client& each) { return each.closed == 0; }));
  }

  GuestBook book_;
  int echoed_ = 0;
  std::unique_ptr<Workers> workers_ = must(Workers::create({.threads = 2}));
  WorkersServer server_ = serve_lodgers();
  std::list<Client> clients_;
};

TEST_P(SessionServers, ConnectionsAreCountedByWorker) {
  EXPECT_EQ(server_.workers(), 2u);
  EXPECT_NE(server_.address().port(), 0);
  EXPECT_EQ(server_.connections(), 0u);
  visit(server_, 6);
  EXPECT_EQ(server_.connections(), 6u);
  EXPECT_EQ(server_.connections(0) + server_.connections(1), 6u);
  EXPECT_EQ(server_.connections(0), workers_->connections(0));
  if (GetParam() == Balance::round_robin) EXPECT_EQ(server_.connections(0), 3u);
  while (clients_.size() > 2) clients_.pop_back();
  run_until([&] { return server_.connections() == 2; });
}

TEST_P(SessionServers, ConnectionsOfOtherServersAreNotCounted) {
  const WorkersServer other = serve_lodgers();
  visit(server_, 2);
  visit(other, 3);
  EXPECT_EQ(server_.connections(), 2u);
  EXPECT_EQ(other.connections(), 3u);
  EXPECT_EQ(connections(*workers_), 5u);
}

TEST_P(SessionServers, ConnectionsAreZeroAfterWorkers) {
  visit(server_, 3);
  workers_.reset();
  EXPECT_EQ(server_.connections(), 0u);
  EXPECT_TRUE(server_.has_stopped());
  EXPECT_NE(server_.address().port(), 0);
  server_.close();
}

TEST_P(SessionServers, CloseKeepsSessions) {
  visit(server_, 3);
  const WorkersServer copy = server_;
  copy.close();
  copy.close();
  run_until([&] { return connect_error(server_.address()) == std::errc::connection_refused; });
  EXPECT_FALSE(server_.has_stopped());
  EXPECT_EQ(book_.drained, 0);
  EXPECT_EQ(open_clients(), 3);
  // The last connection that was not refused may still be counted.
  run_until([&] { return server_.connections() == 3; });
}

TEST_P(SessionServers, DrainIsDoneAfterLastSession) {
  const WorkersServer other = serve_lodgers();
  book_.must_leave = false;
  visit(server_, 4);
  visit(other, 2);
  int done = 0;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { ++done; }));
  run_until([&] { return book_.drained == 4; });
  EXPECT_EQ(done, 0);
  std::list<Client> of_other;
  of_other.splice(of_other.begin(), clients_, std::next(clients_.begin(), 4), clients_.end());
  clients_.clear();
  run_until([&] { return done > 0; });
  EXPECT_EQ(server_.connections(), 0u);
  EXPECT_EQ(book_.late, 0);
  visit(other, 1);  // The threads continue, and the other server.
  EXPECT_EQ(other.connections(), 3u);
  EXPECT_EQ(book_.drained, 4);
  EXPECT_EQ(done, 1);
}

TEST_P(SessionServers, DrainEndsSessions) {
  visit(server_, 4);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { is_done = true; }));
  run_until([&] { return is_done && open_clients() == 0; });
  EXPECT_EQ(book_.late, 0);
}

TEST_P(SessionServers, DrainResetsAfterGrace) {
  book_.must_leave = false;
  visit(server_, 4);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1ms, *loop_, [&] { is_done = true; }));
  run_until([&] { return is_done && open_clients() == 0; });
  EXPECT_EQ(book_.late, 4);
}

TEST_P(SessionServers, DrainKeepsLoopAlive) {
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { is_done = true; }));
  loop_->run();
  EXPECT_TRUE(is_done);
  loop_->run();  // Returns.
}

TEST_P(SessionServers, DrainMayBeRepeatedWithShorterGrace) {
  book_.must_leave = false;
  visit(server_, 4);
  int done = 0;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { ++done; }));
  ASSERT_FALSE(server_.drain(1ms, *loop_, [&] { ++done; }));
  run_until([&] { return done == 2; });
}

TEST_P(SessionServers, DrainAfterStopIsDone) {
  visit(server_, 1);
  clients_.clear();
  workers_->stop(30s);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { is_done = true; }));
  loop_->run();
  EXPECT_TRUE(is_done);
  server_.drain(1h);
}

TEST_P(SessionServers, DrainIsDoneWhenWorkersStop) {
  book_.must_leave = false;
  visit(server_, 2);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] { is_done = true; }));
  workers_.reset();
  run_until([&] { return is_done; });
}

TEST_P(SessionServers, DoneMayDestroyHandleAndWorkers) {
  visit(server_, 2);
  bool is_done = false;
  ASSERT_FALSE(server_.drain(1h, *loop_, [&] {
    server_ = {};
    workers_.reset();
    is_done = true;
  }));
  run_until([&] { return is_done; });
}

TEST_P(SessionServers, DrainMayOutliveItsLoop) {
  book_.must_leave = false;
  visit(server_, 2);
  const auto count = std::make_shared<int>(0);
  auto other = must(Loop::create());
  ASSERT_FALSE(server_.drain(1h, *other, [count] { ++*count; }));
  other.reset();
  EXPECT_EQ(count.use_count(), 1);
  clients_.clear();
  run_until([&] { return server_.connections() == 0; });
  EXPECT_EQ(*count, 0);
}

TEST_P(SessionServers, DrainWaitsForTlsHandshake) {
  const WorkersServer secure = must(spate::serve<Lodger>(
      *workers_, Address::loopback_ipv4(0),
      {.balance = GetParam(),
       .tls = must(TlsContext::server({.identities = {test_server().identity()}}))},
      std::ref(book_)));
  Stream silent;
  const Connecting attempt = connect(*loop_, secure.address(), [&](Result<Stream> made) {
    if (made) silent = std::move(*made);
  });
  run_until([&] { return silent.is_open() && secure.connections() == 1; });
  bool is_done = false;
  ASSERT_FALSE(secure.drain(1ms, *loop_, [&] { is_done = true; }));
  run_until([&] { return is_done; });
  EXPECT_EQ(book_.opened, 0);
}

INSTANTIATE_TEST_SUITE_P(Balances, SessionServers, all_balances());

}  // namespace
}  // namespace spate::testing
