// Client: connects again and again, and no more often than it should.
#include "spate/net/client.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <list>
#include <optional>
#include <string>

#include "base/fault.h"
#include "spate/net/listener.h"
#include "spate/net/resolver.h"
#include "streams/harness.h"
#include "support/own_loopback.h"
#include "sys/socket.h"
#include "system/open_fds.h"
#include "tests/support/name_server.h"
#include "tests/support/scripted.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// ---- in scripted time: every attempt is refused, or reaches a socket of the test's own

class ClientTimeTest : public ::testing::Test {
 protected:
  // Attempts have no deadline: otherwise scripted time would advance to it, as the next thing due,
  // before the test sees the socket.
  Client make(ClientOptions options) {
    options.connect.timeout = Nanos{0};
    Result<Client> made = Client::create(
        loop_, address_,
        [this](Result<Stream> result) {
          times_.push_back(loop_.now() - start_);
          if (result) stream_ = std::move(*result);
        },
        options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  void turn() {
    for (const auto& [fd, registration] : scripted_.backend->registered) {
      if (any(registration.events & Events::write)) scripted_.backend->report(fd, Events::write);
    }
    loop_.run(Run::once);
  }
  void connect_now(Client& client) {
    listening_.emplace(path_);
    client.connect();
    while (client.state() != Client::State::connected) turn();
  }

  // A socket that listens and never accepts.
  class Listening {
   public:
    explicit Listening(const std::string& path) : path_(path) {
      const Address address = *Address::path(path);
      std::remove(path_.c_str());
      EXPECT_EQ(sys::bind(socket_.get(), address.data(), address.size()), 0);
      EXPECT_EQ(sys::listen(socket_.get(), 100), 0);
    }
    ~Listening() { std::remove(path_.c_str()); }

   private:
    std::string path_;
    sys::Descriptor socket_{sys::open_socket(AF_UNIX, SOCK_STREAM)};
  };

  ScriptedLoop scripted_;
  Loop& loop_ = *scripted_.loop;
  const std::string path_ = std::string("spate_client_test_") +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
  Address address_ = *Address::path(path_);
  Nanos start_ = loop_.now();
  std::vector<Nanos> times_;
  std::optional<Listening> listening_;
  Stream stream_;
};

TEST_F(ClientTimeTest, DoublesDelayAfterEachFailureUpToMaximum) {
  Client client = make({.first_delay = 500ms, .max_delay = 5s, .jitter = 0});
  EXPECT_EQ(client.state(), Client::State::idle);
  client.connect();
  EXPECT_EQ(client.state(), Client::State::connecting);
  while (times_.size() < 7) turn();
  const std::vector<Nanos> expected{0ms, 500ms, 1500ms, 3500ms, 7500ms, 12500ms, 17500ms};
  EXPECT_EQ(times_, expected);
  EXPECT_EQ(client.attempts(), 7u);
  EXPECT_EQ(client.failures(), 7u);
  EXPECT_EQ(client.connections(), 0u);
  EXPECT_EQ(client.state(), Client::State::waiting);
  EXPECT_EQ(client.retry_in(), 5s);
  EXPECT_EQ(client.last_error(), std::errc::no_such_file_or_directory);
}

TEST_F(ClientTimeTest, ShortensDelaysByRandomJitter) {
  Client one = make({.first_delay = 1s, .max_delay = 8s, .jitter = 0.5});
  Client other = make({.first_delay = 1s, .max_delay = 8s, .jitter = 0.5});
  one.connect();
  other.connect();
  int different = 0;
  Nanos longest = 1s;
  for (unsigned failures = 1; failures < 10; ++failures) {
    while (one.failures() < failures || other.failures() < failures) turn();
    for (Client* client : {&one, &other}) {
      if (client->failures() != failures) continue;
      EXPECT_LE(client->retry_in(), longest);
    }
    if (one.retry_in() != other.retry_in()) ++different;
    longest = std::min(longest * 2, Nanos{8s});
  }
  EXPECT_GT(different, 5);
  for (std::size_t i = 1; i < times_.size(); ++i) EXPECT_LT(times_[i] - times_[i - 1], 8s);
}

TEST_F(ClientTimeTest, ResetsDelayAfterLongConnection) {
  Client client = make({.first_delay = 1s, .jitter = 0, .steady_after = 10s});
  client.connect();
  while (client.failures() < 3) turn();
  listening_.emplace(path_);
  while (client.state() != Client::State::connected) turn();
  EXPECT_EQ(client.connections(), 1u);
  EXPECT_FALSE(client.last_error());
  scripted_.clock.advance(11s);
  loop_.update_now();
  stream_.abort();
  EXPECT_EQ(client.state(), Client::State::waiting);
  EXPECT_EQ(client.failures(), 0u);
  EXPECT_EQ(client.retry_in(), 1s);
}

TEST_F(ClientTimeTest, CountsShortConnectionAsFailure) {
  Client client = make({.first_delay = 1s, .jitter = 0, .steady_after = 10s});
  connect_now(client);
  Nanos expected = 1s;
  for (int i = 0; i < 4; ++i, expected *= 2) {
    stream_ = Stream();
    EXPECT_EQ(client.state(), Client::State::waiting);
    EXPECT_EQ(client.retry_in(), expected);
    while (client.state() != Client::State::connected) turn();
  }
  EXPECT_EQ(client.connections(), 5u);
  // connect() resets the failures.
  listening_.reset();
  stream_ = Stream();
  client.connect();
  while (client.failures() == 0) turn();
  EXPECT_EQ(client.retry_in(), 1s);
}

TEST_F(ClientTimeTest, StopsAfterMaxFailures) {
  Client client = make({.jitter = 0, .max_failures = 3});
  client.connect();
  while (loop_.active_count() > 0) turn();
  EXPECT_EQ(times_.size(), 3u);
  EXPECT_EQ(client.state(), Client::State::idle);
  client.connect();
  while (loop_.active_count() > 0) turn();
  EXPECT_EQ(times_.size(), 6u);
}

TEST_F(ClientTimeTest, LeavesConnectionOpenWhenStopped) {
  Client client = make({.jitter = 0});
  client.connect();
  client.stop();
  EXPECT_EQ(client.state(), Client::State::idle);
  client.connect();
  while (client.state() != Client::State::waiting) turn();
  client.stop();
  EXPECT_EQ(client.state(), Client::State::idle);
  EXPECT_EQ(loop_.active_count(), 0);
  connect_now(client);
  client.stop();
  EXPECT_EQ(client.state(), Client::State::connected);
  EXPECT_TRUE(stream_.is_open());
  stream_ = Stream();
  EXPECT_EQ(client.state(), Client::State::idle);
}

TEST_F(ClientTimeTest, DisconnectsGracefullyAndMayReconnectAtOnce) {
  Client client = make({.jitter = 0});
  connect_now(client);
  Recorder log;
  stream_.start(log);
  client.disconnect();
  client.disconnect();
  while (log.closed_calls == 0) turn();
  EXPECT_FALSE(log.error);
  EXPECT_EQ(client.state(), Client::State::idle);
  EXPECT_EQ(loop_.active_count(), 0);
  connect_now(client);
  stream_.start(log);
  client.disconnect();
  client.connect();
  while (log.closed_calls == 1) turn();
  EXPECT_NE(client.state(), Client::State::idle);
  EXPECT_EQ(client.retry_in(), 0s);
  EXPECT_EQ(client.failures(), 0u);
  while (client.connections() < 3) turn();
}

TEST_F(ClientTimeTest, LeavesConnectionOpenWhenDestroyed) {
  {
    Client client = make({});
    connect_now(client);
  }
  EXPECT_TRUE(stream_.is_open());
  stream_ = Stream();
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(ClientTimeTest, RetriesWhenNoSocketIsAvailable) {
  Client client = make({.jitter = 0});
  FaultPlan plan;
  plan.fail_share(SystemCall::socket, 1, EMFILE, 1);
  {
    const FaultScope scope(plan);
    client.connect();
    while (client.failures() < 2) turn();
    EXPECT_EQ(client.last_error(), std::errc::too_many_files_open);
  }
  connect_now(client);
}

TEST_F(ClientTimeTest, RejectsInvalidPeers) {
  const auto ignore = [](Result<Stream>) {};
  EXPECT_EQ(Client::create(loop_, Address(), ignore).error(), std::errc::invalid_argument);
  EXPECT_EQ(Client::create(loop_, "", 80, ignore).error(), std::errc::invalid_argument);
  Client moved;
  moved = *Client::create(loop_, address_, ignore);
  EXPECT_EQ(moved.state(), Client::State::idle);
}

TEST_F(ClientTimeTest, IsSafeWhenItIsEmpty) {
  Client moved = make({});
  const Client to = std::move(moved);
  Client fresh;
  for (Client* empty : {&fresh, &moved}) {
    empty->connect();
    empty->disconnect();
    empty->stop();
    EXPECT_EQ(empty->state(), Client::State::idle);
    EXPECT_EQ(empty->attempts(), 0u);
    EXPECT_EQ(empty->connections(), 0u);
    EXPECT_EQ(empty->failures(), 0u);
    EXPECT_FALSE(empty->last_error());
    EXPECT_EQ(empty->retry_in(), 0s);
  }
}

TEST_F(ClientTimeTest, StopsOldClientOnMoveAssignment) {
  Client client = make({.jitter = 0});
  client.connect();
  Client other = make({.jitter = 0});
  client = std::move(other);
  EXPECT_EQ(client.state(), Client::State::idle);
  EXPECT_EQ(loop_.active_count(), 0);
  client.connect();
  Client& same = client;
  client = std::move(same);
  EXPECT_EQ(client.state(), Client::State::connecting);
}

TEST_F(ClientTimeTest, AcceptsAnyDuration) {
  const ClientOptions options{.connect = {.attempt_delay = Nanos::max()},
                              .first_delay = Nanos::max(),
                              .max_delay = Nanos::max(),
                              .jitter = 0,
                              .steady_after = Nanos::max()};
  Client client = make(options);
  connect_now(client);
  stream_ = Stream();
  EXPECT_EQ(client.failures(), 1u);
  EXPECT_GT(client.retry_in(), std::chrono::years(100));
}

// ---- with real sockets

class ClientTest : public ::testing::Test {
 protected:
  Listener listen(const Address& address) {
    Result<Listener> made = Listener::create(loop_, address, [this](Stream stream, const Address&) {
      accepted_.push_back(std::move(stream));
    });
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  OnConnected keep() {
    return [this](Result<Stream> result) {
      ++results_;
      if (!result) return;
      stream_ = std::move(*result);
      stream_.start(log_);
    };
  }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  std::list<Stream> accepted_;
  Recorder log_;
  Stream stream_;
  int results_ = 0;
};

TEST_F(ClientTest, ReconnectsWhenServerReturns) {
  std::optional<Listener> listener(listen(own_address(0)));
  const Address address = listener->address();
  Client client = *Client::create(loop_, address, keep(), {.first_delay = 5ms, .max_delay = 20ms});
  client.connect();
  for (unsigned round = 1; round <= 3; ++round) {
    run_until(loop_, [&] { return accepted_.size() == 1 && client.connections() == round; });
    listener.reset();
    accepted_.clear();
    run_until(loop_, [&] { return client.last_error() == std::errc::connection_refused; });
    listener.emplace(listen(address));
  }
}

TEST_F(ClientTest, ResolvesNameForEachAttempt) {
  NameServer server(loop_);
  ASSERT_FALSE(configure_resolver(
      loop_, {.servers = {server.address()}, .resolv_conf = "/dev/null", .hosts = "/dev/null"}));
  Listener listener = listen(Address::loopback_ipv4(0));
  Client client = *Client::create(loop_, "db.test", listener.address().port(), keep(),
                                  {.first_delay = 1ms, .max_delay = 5ms});
  client.connect();
  run_until(loop_, [&] { return client.failures() >= 2; });
  EXPECT_EQ(client.last_error(), NameError::no_such_host);
  server.names["db.test"] = {.ipv4 = {"127.0.0.1"}};
  run_until(loop_, [&] { return client.state() == Client::State::connected; });
}

TEST_F(ClientTest, MayBeDestroyedAnywhere) {
  Listener listener = listen(Address::loopback_ipv4(0));
  const std::vector<int> fds = open_fds();
  Address nobody;
  {
    nobody = listen(own_address(0)).address();
  }
  for (const Address& address : {listener.address(), nobody}) {
    for (int turns = 0; turns < 8; ++turns) {
      {
        Client client = *Client::create(loop_, address, keep(), {.first_delay = 0ms});
        client.connect();
        for (int i = 0; i < turns; ++i) loop_.run(Run::no_wait);
      }
      const int before = results_;
      for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
      EXPECT_EQ(results_, before);
    }
    std::optional<Client> client;
    int calls = 0;
    client.emplace(*Client::create(loop_, address, [&](Result<Stream>) {
      ++calls;
      client.reset();
    }));
    client->connect();
    run_until(loop_, [&] { return calls == 1; });
    EXPECT_FALSE(client.has_value());
  }
  stream_ = Stream();
  accepted_.clear();
  run_until(loop_, [&] { return accepted_.clear(), open_fds() == fds; });
}

TEST_F(ClientTest, MayBeDestroyedInStreamCallbacksAndNestedRuns) {
  Listener listener = listen(Address::loopback_ipv4(0));
  std::optional<Client> client;
  client.emplace(*Client::create(loop_, listener.address(), keep()));
  log_.when_closed = [&] {
    EXPECT_EQ(client->state(), Client::State::waiting);
    client.reset();
  };
  client->connect();
  run_until(loop_, [&] { return accepted_.size() == 1 && stream_.is_open(); });
  accepted_.clear();
  run_until(loop_, [&] { return !client.has_value(); });

  // The callback ends the connection and runs the loop, which connects again.
  int depth = 0;
  client.emplace(*Client::create(loop_, listener.address(),
                                 [&](Result<Stream> result) {
                                   result = std::unexpected(std::error_code());
                                   if (++depth == 3) return client.reset();
                                   run_until(loop_, [&] { return depth == 3; });
                                 },
                                 {.first_delay = 0ms}));
  client->connect();
  run_until(loop_, [&] { return !client.has_value(); });
  EXPECT_EQ(depth, 3);
}

TEST_F(ClientTest, IsNotCalledInNestedRunAfterItWasDestroyed) {
  Listener listener = listen(own_address(0));
  for (const bool is_refused : {false, true}) {
    const Address address = listener.address();
    if (is_refused) listener = Listener();
    std::optional<Client> client;
    int calls = 0;
    client = *Client::create(loop_, address,
                             [&](Result<Stream> result) {
                               ++calls;
                               client.reset();
                               result = std::unexpected(std::error_code());
                               run_turns(loop_, 5);
                             },
                             {.first_delay = 0ms});
    client->connect();
    run_until(loop_, [&] { return calls == 1; });
    run_turns(loop_, 5);
    EXPECT_EQ(calls, 1);
  }
}

TEST_F(ClientTest, MayOutliveItsLoop) {
  Listener listener = listen(Address::loopback_ipv4(0));
  for (int turns = 0; turns < 6; ++turns) {
    std::unique_ptr<Loop> loop = *Loop::create();
    Stream stream;
    Client client = *Client::create(*loop, listener.address(), [&](Result<Stream> result) {
      if (result) stream = std::move(*result);
    });
    client.connect();
    for (int i = 0; i < turns; ++i) loop->run(Run::no_wait);
    loop.reset();
    EXPECT_EQ(client.state(), Client::State::idle);
    client.connect();
    client.disconnect();
    stream = Stream();
    EXPECT_EQ(client.state(), Client::State::idle);
  }
}

}  // namespace
}  // namespace spate::testing
