// connect() by name: the addresses of the name are raced, and there is one result.
#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/resolver.h"
#include "streams/harness.h"
#include "system/open_fds.h"
#include "tests/support/closed_port.h"
#include "tests/support/name_server.h"
#include "tests/support/random.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class ConnectingTest : public ::testing::Test {
 protected:
  ConnectingTest() {
    EXPECT_FALSE(configure_resolver(loop_, {.servers = {server_.address()},
                                            .resolv_conf = "/dev/null",
                                            .hosts = "/dev/null",
                                            .timeout = 1min}));
    server_.names["both.test"] = {.ipv6 = {"::1"}, .ipv4 = {"127.0.0.1"}};
    server_.names["four.test"] = {.ipv4 = {"127.0.0.1"}};
    server_.names["silent.test"] = {.is_silent = true};
  }

  Listener listen(const Address& address, const ListenOptions& options = {}) {
    Result<Listener> made = Listener::create(
        loop_, address,
        [this](Stream stream, const Address&) { accepted_.push_back(std::move(stream)); }, options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  OnConnected keep() {
    return [this](Result<Stream> result) {
      ++results_;
      error_ = result ? std::error_code() : result.error();
      if (result) stream_ = std::move(*result);
    };
  }
  // Returns the address of the connection, or the error.
  std::string connect_to(std::string_view host, std::uint16_t port,
                         const ConnectOptions& options = {}) {
    const int before = results_;
    stream_ = Stream();
    const Connecting connecting = connect(loop_, host, port, keep(), options);
    EXPECT_EQ(results_, before);  // Never from inside the call.
    run_until(loop_, [&] { return results_ > before; });
    return error_ ? error_.message() : stream_.peer_address().host();
  }
  static std::string text_of(auto error) { return make_error_code(error).message(); }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  NameServer server_{loop_};
  std::list<Stream> accepted_;
  Stream stream_;
  std::error_code error_;
  int results_ = 0;
};

TEST_F(ConnectingTest, PrefersIpv6) {
  Listener listener = listen(Address::any_ipv6(0));
  EXPECT_EQ(connect_to("both.test", listener.address().port()), "::1");
}

TEST_F(ConnectingTest, FallsBackToIpv4IfIpv6IsRefused) {
  Listener listener = listen(Address::loopback_ipv4(0));
  EXPECT_EQ(connect_to("both.test", listener.address().port()), "127.0.0.1");
}

TEST_F(ConnectingTest, AcceptsNumericAddress) {
  Listener listener = listen(Address::loopback_ipv4(0));
  EXPECT_EQ(connect_to("127.0.0.1", listener.address().port()), "127.0.0.1");
  EXPECT_EQ(server_.udp_questions, 0);
}

TEST_F(ConnectingTest, WaitsForIpv6UntilResolutionDelay) {
  Listener listener = listen(Address::any_ipv6(0));
  server_.names["both.test"].ipv6_delay = 20ms;
  EXPECT_EQ(connect_to("both.test", listener.address().port(), {.resolution_delay = 1h}), "::1");
  server_.names["both.test"].ipv6_delay = 1h;
  const Nanos before = loop_.now();
  EXPECT_EQ(connect_to("both.test", listener.address().port()), "127.0.0.1");
  EXPECT_GE(loop_.now() - before, 50ms);
}

TEST_F(ConnectingTest, TriesIpv4FirstIfConfigured) {
  Listener listener = listen(Address::any_ipv6(0));
  const std::uint16_t port = listener.address().port();
  EXPECT_EQ(connect_to("both.test", port, {.ipv6_first = false}), "127.0.0.1");
  server_.names["both.test"].ipv4_delay = 20ms;
  EXPECT_EQ(connect_to("both.test", port, {.resolution_delay = 1h, .ipv6_first = false}),
            "127.0.0.1");
  server_.names["both.test"].ipv4_delay = 1h;
  EXPECT_EQ(connect_to("both.test", port, {.ipv6_first = false}), "::1");
}

TEST_F(ConnectingTest, DoesNotWaitForAbsentIpv6) {
  Listener listener = listen(Address::loopback_ipv4(0));
  EXPECT_EQ(connect_to("four.test", listener.address().port(), {.resolution_delay = 1h}),
            "127.0.0.1");
  // The order in which the families' results arrive does not matter.
  server_.names["four.test"].ipv4_delay = 20ms;
  EXPECT_EQ(connect_to("four.test", listener.address().port(), {.resolution_delay = 1h}),
            "127.0.0.1");
  server_.names["four.test"].ipv4_delay = 0ms;
  server_.names["four.test"].ipv6_delay = 20ms;
  EXPECT_EQ(connect_to("four.test", listener.address().port(), {.resolution_delay = 1h}),
            "127.0.0.1");
}

TEST_F(ConnectingTest, TriesAddressesThatArriveLate) {
  Listener listener = listen(Address::loopback_ipv6(0));
  server_.names["both.test"].ipv6_delay = 60ms;
  EXPECT_EQ(connect_to("both.test", listener.address().port(), {.resolution_delay = 1ms}), "::1");
}

TEST_F(ConnectingTest, ReportsWhyThereIsNoAddress) {
  EXPECT_EQ(connect_to("nobody.test", 80), text_of(NameError::no_such_host));
  EXPECT_EQ(connect_to("a b", 80), text_of(NameError::bad_name));
  EXPECT_EQ(connect_to("", 80), text_of(NameError::bad_name));
  server_.names["empty.test"] = {};
  EXPECT_EQ(connect_to("empty.test", 80), text_of(NameError::no_address));
}

TEST_F(ConnectingTest, DistinguishesResolverFailureFromNoAddress) {
  for (const Nanos delay : {0ms, 10ms}) {  // In either order of the answers.
    server_.names["four.fails"] = {.ipv4_code = 2, .ipv6_delay = 10ms - delay, .ipv4_delay = delay};
    server_.names["six.fails"] = {.ipv6_code = 2, .ipv6_delay = 10ms - delay, .ipv4_delay = delay};
    EXPECT_EQ(connect_to("four.fails", 80), text_of(NameError::server_failure));
    EXPECT_EQ(connect_to("six.fails", 80), text_of(NameError::server_failure));
  }
}

TEST_F(ConnectingTest, ReportsErrorOfLastAddress) {
  EXPECT_EQ(connect_to("both.test", kClosedPort), text_of(std::errc::connection_refused));
}

TEST_F(ConnectingTest, TimesOutDuringNameResolution) {
  EXPECT_EQ(connect_to("silent.test", 80, {.timeout = 30ms}), text_of(Error::connect_timeout));
}

TEST_F(ConnectingTest, TimesOutWhileWaitingForOtherFamily) {
  server_.names["half.test"] = {.ipv4 = {"127.0.0.1"}, .ipv6_delay = 1h};
  const std::int64_t active = loop_.active_count();
  const Connecting connecting =
      connect(loop_, "half.test", 80, keep(), {.timeout = 30ms, .resolution_delay = 1h});
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_EQ(error_, Error::connect_timeout);
  EXPECT_LE(loop_.active_count(), active + 1);  // The server's delayed answer.
}

TEST_F(ConnectingTest, ConnectsFromItsLocalAddressOnly) {
  Listener listener = listen(Address::any_ipv6(0));
  const std::uint16_t port = listener.address().port();
  EXPECT_EQ(connect_to("both.test", port, {.local = Address::loopback_ipv4(0)}), "127.0.0.1");
  EXPECT_EQ(server_.ipv6_questions, 0);
  EXPECT_EQ(connect_to("::1", port, {.local = Address::loopback_ipv4(0)}),
            text_of(std::errc::address_family_not_supported));
}

TEST_F(ConnectingTest, TreatsSelfConnectionAsRefusal) {
  Address nobody;
  {
    nobody = listen(own_address(0)).address();
  }
  EXPECT_EQ(connect_to(own_loopback_text(), nobody.port(), {.local = nobody}),
            text_of(std::errc::connection_refused));
  // The port is free again at once.
  Listener listener = listen(nobody);
  EXPECT_EQ(connect_to(own_loopback_text(), nobody.port()), own_loopback_text());
}

TEST_F(ConnectingTest, FailsWithoutAddresses) {
  const Connecting connecting = connect(loop_, std::vector<Address>{}, keep());
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_EQ(error_, std::errc::invalid_argument);
}

TEST_F(ConnectingTest, IsNotCalledBackAfterCancellation) {
  Listener listener = listen(Address::any_ipv6(0));
  const std::uint16_t port = listener.address().port();
  server_.names["slow.test"] = {
      .ipv6 = {"::1"}, .ipv4 = {"127.0.0.1"}, .ipv6_delay = 3ms, .ipv4_delay = 1ms};
  for (const std::string_view name : {"both.test", "slow.test", "silent.test", "nobody.test", ""}) {
    for (int turns = 0; turns < 12; ++turns) {
      Connecting connecting = connect(loop_, name, port, keep());
      const int before = results_;
      for (int i = 0; i < turns && results_ == before; ++i) loop_.run(Run::no_wait);
      const int after = results_;
      connecting.cancel();
      for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
      EXPECT_EQ(results_, after) << name << " after " << turns << " turns";
    }
  }
}

TEST_F(ConnectingTest, MayBeDestroyedInsideItsCallback) {
  Listener listener = listen(Address::any_ipv6(0));
  for (const std::string_view name : {"both.test", "four.test", "nobody.test", "silent.test", ""}) {
    std::optional<Connecting> connecting;
    int calls = 0;
    connecting.emplace(connect(loop_, name, listener.address().port(),
                               [&](Result<Stream>) {
                                 ++calls;
                                 connecting.reset();
                               },
                               {.timeout = 100ms}));
    run_until(loop_, [&] { return calls == 1; });
    EXPECT_FALSE(connecting.has_value());
  }
}

TEST_F(ConnectingTest, HasOneResultThoughItsCallbackRunsLoop) {
  Listener listener = listen(Address::any_ipv6(0));
  for (const bool is_destroyed : {false, true}) {
    for (const std::string_view name : {"both.test", "::1", "nobody.test", "silent.test", ""}) {
      std::optional<Connecting> connecting;
      int calls = 0;
      bool is_over = false;
      connecting.emplace(connect(loop_, name, listener.address().port(),
                                 [&](Result<Stream>) {
                                   ++calls;
                                   if (is_destroyed) connecting.reset();
                                   run_turns(loop_, 5);
                                   connecting.reset();
                                   run_turns(loop_, 5);
                                   is_over = true;
                                 },
                                 {.timeout = 100ms}));
      run_until(loop_, [&] { return is_over; });
      EXPECT_EQ(calls, 1) << name;
    }
  }
}

TEST_F(ConnectingTest, AcceptsAnyDuration) {
  Listener listener = listen(Address::loopback_ipv4(0));
  const std::uint16_t port = listener.address().port();
  const ConnectOptions options{
      .timeout = Nanos::max(), .attempt_delay = Nanos::max(), .resolution_delay = Nanos::max()};
  EXPECT_EQ(connect_to("both.test", port, options), "127.0.0.1");
  EXPECT_EQ(connect_to("127.0.0.1", port, options), "127.0.0.1");
}

TEST_F(ConnectingTest, StopsQueryingOnceConnected) {
  Listener listener = listen(Address::loopback_ipv6(0));
  server_.names["half.test"] = {.ipv6 = {"::1"}, .ipv4 = {"127.0.0.1"}, .ipv4_delay = 1h};
  const std::int64_t active = loop_.active_count();
  const Connecting connecting = connect(loop_, "half.test", listener.address().port(), keep());
  run_until(loop_, [&] { return results_ == 1; });
  // The server's delayed answer.
  EXPECT_LE(loop_.active_count(), active + 1);
}

TEST_F(ConnectingTest, MayOutliveItsLoop) {
  const std::vector<int> fds = open_fds();
  for (const std::string_view name : {"both.test", "silent.test", "127.0.0.1"}) {
    for (int turns = 0; turns < 8; ++turns) {
      std::unique_ptr<Loop> loop = *Loop::create();
      ASSERT_FALSE(configure_resolver(
          *loop,
          {.servers = {server_.address()}, .resolv_conf = "/dev/null", .hosts = "/dev/null"}));
      const Connecting connecting = connect(*loop, name, server_.address().port(), keep());
      for (int i = 0; i < turns; ++i) {
        loop->run(Run::no_wait);
        loop_.run(Run::no_wait);
      }
      loop.reset();
      stream_ = Stream();
    }
  }
  run_until(loop_, [&] { return open_fds() == fds; });
}

TEST_F(ConnectingTest, SurvivesRandomConnectsAndCancellations) {
  Listener listener = listen(Address::any_ipv6(0));
  const std::uint16_t port = listener.address().port();
  Random random(11);
  const std::string_view names[] = {"both.test",   "four.test", "silent.test",
                                    "nobody.test", "127.0.0.1", "::1"};
  std::vector<Connecting> all(12);
  int asked = 0;
  for (int i = 0; i < 2000; ++i) {
    Connecting& one = all[random.below(all.size())];
    if (random.one_in(3)) {
      one.cancel();
    } else {
      one = connect(loop_, names[random.below(std::size(names))], port, keep(),
                    {.timeout = random.one_in(4) ? 1ms : 0ms, .resolution_delay = 1ms});
      ++asked;
    }
    if (random.one_in(2)) loop_.run(Run::no_wait);
    if (random.one_in(16)) accepted_.clear();
  }
  all.clear();
  EXPECT_LE(results_, asked);
  EXPECT_GT(results_, 0);
}

// connect() to an address either connects, or reports the kernel's error. With a name it may also
// report that no name server could be reached. Failures of the sockets for name queries do not
// affect an address.
TEST_F(ConnectingTest, HasOneResultDespiteSystemCallFailures) {
  Listener listener = listen(Address::any_ipv6(0));
  const std::uint16_t port = listener.address().port();
  for (const SystemCall call : {SystemCall::socket, SystemCall::connect, SystemCall::send,
                                SystemCall::receive, SystemCall::socket_option}) {
    for (const int error : {EMFILE, ENOBUFS, EINTR, EAGAIN}) {
      FaultPlan plan;
      plan.fail_share(call, 0.4, error, 5);
      const FaultScope scope(plan);
      std::vector<Result<Stream>> by_name;
      std::vector<Result<Stream>> by_address;
      const auto note = [](std::vector<Result<Stream>>& made) {
        return [&made](Result<Stream> result) { made.push_back(std::move(result)); };
      };
      const Connecting one = connect(loop_, "both.test", port, note(by_name), {.timeout = 500ms});
      const Connecting two =
          connect(loop_, "127.0.0.1", port, note(by_address), {.timeout = 500ms});
      run_until(loop_, [&] { return by_name.size() == 1 && by_address.size() == 1; });
      run_turns(loop_, 3);
      ASSERT_EQ(by_name.size() + by_address.size(), 2u);
      const bool is_pretended = call == SystemCall::connect && error == EINTR;
      for (const Result<Stream>* made : {&by_name[0], &by_address[0]}) {
        if (*made && !is_pretended) EXPECT_EQ((*made)->peer_address().port(), port);
      }
      const bool is_asking_only = call == SystemCall::send || call == SystemCall::receive;
      if (!by_address[0]) EXPECT_EQ(by_address[0].error().value(), is_asking_only ? 0 : error);
      if (!by_name[0]) {
        const std::error_code why = by_name[0].error();
        EXPECT_TRUE(why.category() == name_category() || why == Error::connect_timeout ||
                    why.value() == error)
            << why.message();
      }
    }
  }
}

}  // namespace
}  // namespace spate::testing
