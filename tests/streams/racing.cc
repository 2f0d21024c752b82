// connect() by name over a network that loses one family and is slow with the other (RFC 8305).
#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <string>

#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/resolver.h"
#include "streams/harness.h"
#include "tests/support/name_server.h"
#include "tests/support/own_file.h"
#include "tests/support/slow_network.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class RacingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = SlowNetwork::why_not(); !reason.empty())
      GTEST_SKIP() << reason;
    network_.emplace(loop_);
    server_.emplace(loop_);
    ASSERT_FALSE(configure_resolver(
        loop_,
        {.servers = {server_->address()}, .resolv_conf = "/dev/null", .hosts = "/dev/null"}));
    server_->names["far.test"] = {.ipv6 = {std::string(SlowNetwork::kFarIpv6)},
                                  .ipv4 = {std::string(SlowNetwork::kFarIpv4)}};
    listener_ = network_->far([&] {
      return std::move(*Listener::create(
          loop_, Address::any_ipv6(0),
          [this](Stream stream, const Address&) { accepted_.push_back(std::move(stream)); }));
    });
    loop_.update_now();  // It took a while.
  }

  // Returns the address of the connection, or the error. `took_` is the time it took.
  std::string connect_to(std::string_view host, const ConnectOptions& options = {}) {
    std::string outcome;
    const Nanos before = loop_.now();
    const Connecting connecting = connect(
        loop_, host, listener_.address().port(),
        [&](Result<Stream> result) {
          took_ = loop_.now() - before;
          outcome = result ? result->peer_address().host() : result.error().message();
        },
        options);
    bool is_late = false;
    Timer limit(loop_, [&] { is_late = true; });
    limit.start(20s);
    while (outcome.empty() && !is_late) loop_.run(Run::once);
    return outcome;
  }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  std::optional<SlowNetwork> network_;
  std::optional<NameServer> server_;
  Listener listener_;
  std::list<Stream> accepted_;
  Nanos took_{0};
};

TEST_F(RacingTest, Ipv6WinsIfBothWork) {
  EXPECT_EQ(connect_to("far.test", {.attempt_delay = 10s}), SlowNetwork::kFarIpv6);
  ASSERT_EQ(network_->attempts.size(), 1u);
  EXPECT_EQ(network_->attempts[0].to, SlowNetwork::kFarIpv6);
}

TEST_F(RacingTest, SlowIpv4WinsIfIpv6IsBlackHole) {
  network_->ipv6.is_black_hole = true;
  network_->ipv4.delay = 200ms;  // 400 ms there and back.
  const Nanos begin = loop_.now();
  EXPECT_EQ(connect_to("far.test"), SlowNetwork::kFarIpv4);
  ASSERT_EQ(network_->attempts.size(), 2u);
  EXPECT_EQ(network_->attempts[0].to, SlowNetwork::kFarIpv6);
  EXPECT_GE(network_->attempts[1].when - begin, 249ms);
  EXPECT_GE(took_, 650ms);
}

// A client that cancels an attempt when the next one begins would never connect.
TEST_F(RacingTest, SlowFirstAttemptMayWin) {
  network_->ipv6.delay = 350ms;
  network_->ipv4.is_black_hole = true;
  EXPECT_EQ(connect_to("far.test"), SlowNetwork::kFarIpv6);
  EXPECT_EQ(network_->attempts.size(), 2u);
  EXPECT_GE(took_, 700ms);
}

// The network may see an attempt late, so each time is compared with the beginning.
TEST_F(RacingTest, AlternatesFamiliesAndRespectsAttemptDelay) {
  network_->ipv6.is_black_hole = true;
  network_->ipv4.is_black_hole = true;
  server_->names["many.test"] = {.ipv6 = {"fd00:99::11", "fd00:99::12", "fd00:99::13"},
                                 .ipv4 = {"10.99.0.11", "10.99.0.12"}};
  const Nanos begin = loop_.now();
  const Connecting connecting = connect(loop_, "many.test", listener_.address().port(),
                                        [](Result<Stream>) {}, {.attempt_delay = 40ms});
  run_until(loop_, [&] { return network_->attempts.size() == 5; });
  ASSERT_EQ(network_->attempts.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(network_->attempts[i].to.starts_with("fd00"), i % 2 == 0) << i;
    EXPECT_GE(network_->attempts[i].when - begin, static_cast<int>(i) * 39ms);
  }
}

TEST_F(RacingTest, SkipsIpv6WithoutRoute) {
  server_->names["away.test"] = {.ipv6 = {"2001:db8::1", "2001:db8::2"},
                                 .ipv4 = {std::string(SlowNetwork::kFarIpv4)}};
  EXPECT_EQ(connect_to("away.test", {.attempt_delay = 10s}), SlowNetwork::kFarIpv4);
  EXPECT_EQ(network_->attempts.size(), 1u);
}

// ---- a private network also has the port of name servers

TEST_F(RacingTest, QueriesConfiguredServersConfiguredNumberOfTimes) {
  NameServer server(loop_, *Address::ip("127.0.0.1", 53));
  server.names["db.test"] = {.ipv4 = {"192.0.2.1"}};
  server.names["silent.test"] = {.is_silent = true};
  const OwnFile file("resolv_conf", "# ours\nnameserver 127.0.0.1\noptions timeout:1 attempts:2\n");
  ASSERT_FALSE(configure_resolver(loop_, {.resolv_conf = file.path(), .hosts = "/dev/null"}));
  std::string outcome;
  const auto note = [&](Result<std::vector<Address>> result) {
    outcome = result ? result->front().host() : result.error().message();
  };
  const Resolving found = resolve(loop_, "db.test", 80, note);
  run_until(loop_, [&] { return !outcome.empty(); });
  EXPECT_EQ(outcome, "192.0.2.1");

  outcome.clear();
  server.udp_questions = 0;
  const Resolving silent = resolve(loop_, "silent.test", 80, note, {.ipv6 = false});
  while (outcome.empty()) loop_.run(Run::once);
  EXPECT_EQ(outcome, make_error_code(NameError::timeout).message());
  for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
  EXPECT_EQ(server.udp_questions, 2);
}

}  // namespace
}  // namespace spate::testing
