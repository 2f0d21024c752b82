// Gateway with GatewayOptions::upstreams: the choice, the rests, and the retries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "http/gateway_harness.h"

namespace spate::testing {
namespace {

using http::UpstreamBalance;
using http::GatewayOptions;
using http::Upstream;
using http::UpstreamOptions;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class GatewayUpstreamsTest : public GatewayTest {
 protected:
  static constexpr std::string_view kKept =
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  static constexpr std::string_view kLast =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
  static constexpr std::string_view kUpload =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";

  GatewayUpstreamsTest() {
    on_request = [this](http::Exchange exchange) { gateway_.forward(std::move(exchange)); };
    use({});
  }

  static std::vector<Upstream> three() { return {{"http://a"}, {"http://b"}, {"http://c"}}; }

  // Replaces the gateway by one with these upstreams; by default a, b and c.
  void use(UpstreamOptions upstreams, GatewayOptions options = {}) {
    if (upstreams.servers.empty()) upstreams.servers = three();
    upstreams.on_change = [this](const http::UpstreamChange& change) {
      changes.push_back(std::string(change.url.substr(7, 1)) +
                        (change.is_available ? " is available" : " " + change.error.message()));
      last_rest = change.rest;
    };
    options.upstreams = std::move(upstreams);
    make_gateway(std::move(options));
  }
  // Makes each upstream respond at once, and close.
  void respond_at_once() {
    on_upstream = [](Peer& peer) {
      if (!peer.heard().empty()) peer.answer(kLast);
    };
  }
  // Returns the host at which a request ends.
  std::string host_for(std::string_view request = kGet) {
    const auto client = ask(request);
    EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 "));
    return opened.back().substr(0, 1);
  }
  std::string hosts_for(int count) {
    std::string hosts;
    for (int i = 0; i < count; ++i) hosts += host_for();
    return hosts;
  }
  std::string asked() const {
    std::string hosts;
    for (const std::string& each : opened) hosts += each.substr(0, 1);
    return hosts;
  }
  static std::string with_user(int number) {
    return "GET / HTTP/1.1\r\nHost: a\r\nX-User: " + std::to_string(number) + "\r\n\r\n";
  }

  std::vector<std::string> changes;
  Nanos last_rest{0};
};

// ---- the options

TEST_F(GatewayUpstreamsTest, RejectsInvalidOptions) {
  const auto error_of = [&](UpstreamOptions upstreams) {
    GatewayOptions options;
    options.upstreams = std::move(upstreams);
    const auto gateway = http::Gateway::create(loop_, std::move(options));
    return gateway ? std::error_code() : gateway.error();
  };
  EXPECT_EQ(error_of({.servers = three()}), std::error_code());
  EXPECT_EQ(error_of({.servers = three(), .max_fails = 0}), std::error_code());
  std::vector<UpstreamOptions> invalid;
  const auto add = [&](UpstreamOptions options) { invalid.push_back(std::move(options)); };
  add({});
  add({.servers = {{"http://a", 0}}});
  add({.servers = {{"http://a", 1001}}});
  add({.servers = {{"nonsense"}}});
  add({.servers = {{"ftp://a"}}});
  add({.servers = {{"https://a"}}});
  add({.servers = {{"http://a"}, {"https://b"}}});
  add({.servers = {{"http://a/path"}}});
  add({.servers = {{"http://a?query"}}});
  add({.servers = {{"http://a/#"}}});
  add({.servers = {{"http://a"}, {"http://b"}, {"http://A:80/"}}});
  add({.servers = three(), .key_field = "X-User"});
  add({.servers = three(), .key_cookie = "user"});
  add({.servers = three(), .balance = UpstreamBalance::consistent_hash, .key_field = "X User"});
  add({.servers = three(), .balance = UpstreamBalance::consistent_hash, .key_cookie = "us;er"});
  add({.servers = three(),
       .balance = UpstreamBalance::consistent_hash,
       .key_field = "X-User",
       .key_cookie = "user"});
  add({.servers = three(), .fail_window = Nanos{0}});
  add({.servers = three(), .first_rest = Nanos{0}});
  add({.servers = three(), .first_rest = 2s, .max_rest = 1s});
  add({.servers = three(), .max_rest = Nanos::max()});
  add({.servers = three(), .attempts = 0});
  for (std::size_t i = 0; i < invalid.size(); ++i)
    EXPECT_EQ(error_of(std::move(invalid[i])), std::errc::invalid_argument) << i;
}

TEST_F(GatewayUpstreamsTest, Responds502WithoutUpstreams) {
  make_gateway();
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(gateway_.metrics().failed, 1u);
  EXPECT_THAT(gateway_.upstreams(), IsEmpty());
}

// ---- the choice

TEST_F(GatewayUpstreamsTest, ChoosesEquallyLoadedInTurn) {
  respond_at_once();
  EXPECT_EQ(hosts_for(6), "abcabc");
}

TEST_F(GatewayUpstreamsTest, ChoosesByWeight) {
  use({.servers = {{"http://a", 4}, {"http://b", 2}, {"http://c", 1}}});
  respond_at_once();
  EXPECT_EQ(hosts_for(7), "abacaba");
}

TEST_F(GatewayUpstreamsTest, ChoosesLeastConnections) {
  const auto slow = ask(kGet);
  respond_at_once();
  EXPECT_EQ(hosts_for(4), "bcbc");
  up(0).answer(kLast);
  turns();
  EXPECT_THAT(hosts_for(3), ::testing::HasSubstr("a"));
}

TEST_F(GatewayUpstreamsTest, ChoosesLeastConnectionsForItsWeight) {
  use({.servers = {{"http://a", 3}, {"http://b", 1}}});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(ask(kGet));
  const auto metrics = gateway_.upstreams();
  EXPECT_EQ(metrics[0].forwarding, 6u);
  EXPECT_EQ(metrics[1].forwarding, 2u);
}

TEST_F(GatewayUpstreamsTest, CountsTunnelsAsConnections) {
  const auto client = ask(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  up(0).answer(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  turns();
  EXPECT_EQ(gateway_.metrics().tunnels, 1u);
  respond_at_once();
  EXPECT_EQ(hosts_for(4), "bcbc");
}

TEST_F(GatewayUpstreamsTest, ChoosesByHashOfField) {
  use({.balance = UpstreamBalance::consistent_hash, .key_field = "X-User"});
  respond_at_once();
  std::map<std::string, int> shares;
  for (int i = 0; i < 300; ++i) {
    const std::string host = host_for(with_user(i));
    ++shares[host];
    EXPECT_EQ(host_for(with_user(i)), host);
  }
  for (const auto& [host, share] : shares) EXPECT_NEAR(share, 100, 40) << host;
}

TEST_F(GatewayUpstreamsTest, HashesByWeight) {
  use({.servers = {{"http://a", 1}, {"http://b", 3}},
       .balance = UpstreamBalance::consistent_hash,
       .key_field = "X-User"});
  respond_at_once();
  int share = 0;
  for (int i = 0; i < 400; ++i) share += host_for(with_user(i)) == "b";
  EXPECT_NEAR(share, 300, 50);
}

TEST_F(GatewayUpstreamsTest, MovesOnlyKeysOfUnavailableUpstream) {
  use({.balance = UpstreamBalance::consistent_hash, .key_field = "X-User", .max_fails = 1});
  respond_at_once();
  std::map<int, std::string> before;
  for (int i = 0; i < 300; ++i) before[i] = host_for(with_user(i));
  unreachable = {"b"};
  std::map<std::string, int> moved;
  for (int i = 0; i < 300; ++i) {
    const std::string host = host_for(with_user(i));
    if (before[i] == "b") {
      ++moved[host];
    } else {
      EXPECT_EQ(host, before[i]) << i;
    }
  }
  EXPECT_NEAR(moved["a"], 50, 25);
  EXPECT_NEAR(moved["c"], 50, 25);
  unreachable.clear();
  pass(2s);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(host_for(with_user(i)), before[i]) << i;
}

TEST_F(GatewayUpstreamsTest, ChoosesByHashOfCookieOrAddress) {
  use({.balance = UpstreamBalance::consistent_hash, .key_cookie = "user"});
  serve_with({.proxy_protocol = http::ProxyProtocol::always});
  respond_at_once();
  std::map<std::string, int> cookies;
  std::map<std::string, int> addresses;
  for (int i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i);
    const std::string cookie = "GET / HTTP/1.1\r\nHost: a\r\nCookie: x=" + number;
    ++cookies[host_for("PROXY TCP4 10.0.0." + number + " 10.0.0.1 5 80\r\n" + cookie +
                       "; user=ada\r\n\r\n")];
    const std::string rest = " 80\r\n" + cookie + "; other=1\r\n\r\n";
    const std::string from = "PROXY TCP4 10.0.0." + number + " 10.0.0.1 ";
    const std::string host = host_for(from + "5" + rest);
    EXPECT_EQ(host_for(from + "6" + rest), host);
    ++addresses[host];
  }
  EXPECT_THAT(cookies, SizeIs(1));
  EXPECT_THAT(addresses, SizeIs(3));
}

// ---- retries

TEST_F(GatewayUpstreamsTest, RetriesGetAfterLostConnection) {
  const auto client = ask(kGet);
  up(0).stream().abort();
  turns();
  EXPECT_EQ(asked(), "ab");
  EXPECT_THAT(up(1).received, StartsWith("GET / HTTP/1.1\r\n"));
  up(1).answer(kKept);
  turns();
  EXPECT_THAT(client->received, EndsWith("\r\n\r\nok"));
  EXPECT_EQ(gateway_.metrics().retried, 1u);
  EXPECT_EQ(gateway_.metrics().failed, 0u);
  EXPECT_EQ(gateway_.upstreams()[0].failed, 1u);
  EXPECT_EQ(gateway_.upstreams()[0].forwarding, 0u);
}

TEST_F(GatewayUpstreamsTest, DoesNotRetryPostThatWasSent) {
  const auto client = ask(kUpload);
  up(0).stream().abort();
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(asked(), "a");
}

TEST_F(GatewayUpstreamsTest, RetriesPostThatWasNotSent) {
  unreachable = {"a", "b"};
  const auto client = ask(kUpload);
  EXPECT_EQ(asked(), "abc");
  EXPECT_THAT(up(0).received, EndsWith("\r\n\r\nhi"));
  EXPECT_EQ(gateway_.metrics().unreached, 2u);
}

TEST_F(GatewayUpstreamsTest, DoesNotRetryPutAfterItsBodyWasRead) {
  const auto client = ask("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  up(0).stream().abort();
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(asked(), "a");
}

TEST_F(GatewayUpstreamsTest, DoesNotRetryAfterPartOfResponse) {
  const auto informed = ask(kGet);
  up(0).answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  turns();
  up(0).stream().abort();
  turns();
  EXPECT_THAT(informed->received, ::testing::HasSubstr("HTTP/1.1 502 "));
  const auto begun = ask(kGet);
  up(1).answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
  turns();
  up(1).stream().abort();
  turns();
  EXPECT_EQ(begun->error, std::errc::connection_reset);
  EXPECT_EQ(asked(), "ab");
}

TEST_F(GatewayUpstreamsTest, DoesNotRetryMalformedResponse) {
  EXPECT_THAT(got_for("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(asked(), "a");
  EXPECT_EQ(gateway_.upstreams()[0].failed, 1u);
}

TEST_F(GatewayUpstreamsTest, ForwardsResponseOfAnyStatus) {
  EXPECT_THAT(got_for("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(gateway_.upstreams()[0].failed, 0u);
}

TEST_F(GatewayUpstreamsTest, TriesEachUpstreamOnce) {
  unreachable = {"a", "b", "c"};
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(asked(), "abc");
  EXPECT_EQ(gateway_.metrics().failed, 1u);
}

TEST_F(GatewayUpstreamsTest, SendsRequestToAtMostAttempts) {
  use({.servers = {{"http://a"}, {"http://b"}, {"http://c"}, {"http://d"}}, .attempts = 2});
  unreachable = {"a"};
  const auto client = ask(kGet);
  for (std::size_t i = 0; i < 2; ++i) {
    up(i).stream().abort();
    turns();
  }
  EXPECT_EQ(asked(), "abc");
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 502 "));
}

// ---- rests

TEST_F(GatewayUpstreamsTest, RestsAfterMaxFails) {
  use({.max_fails = 2});
  respond_at_once();
  unreachable = {"a"};
  EXPECT_EQ(hosts_for(6), "bcbcbc");
  EXPECT_EQ(std::ranges::count(opened, "a:80"), 2);
  EXPECT_THAT(changes, ElementsAre("a Connection refused"));
  EXPECT_FALSE(gateway_.upstreams()[0].is_available);
  EXPECT_GT(last_rest, 500ms - 1ns);
  EXPECT_LE(last_rest, 1s);

  unreachable.clear();
  pass(last_rest + 1ms);
  EXPECT_THAT(hosts_for(3), ::testing::HasSubstr("a"));
  EXPECT_THAT(changes, ElementsAre("a Connection refused", "a is available"));
  EXPECT_TRUE(gateway_.upstreams()[0].is_available);
}

TEST_F(GatewayUpstreamsTest, NeverRestsWithoutMaxFails) {
  use({.max_fails = 0});
  respond_at_once();
  unreachable = {"a"};
  hosts_for(20);
  EXPECT_GT(std::ranges::count(opened, "a:80"), 5);
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(GatewayUpstreamsTest, ForgetsFailuresBeforeWindow) {
  use({.max_fails = 3, .fail_window = 10s});
  respond_at_once();
  unreachable = {"a"};
  const auto fail_once = [&] {
    const auto before = gateway_.upstreams()[0].failed;
    for (int i = 0; i < 6 && gateway_.upstreams()[0].failed == before; ++i) host_for();
  };
  fail_once();
  fail_once();
  pass(11s);
  fail_once();
  fail_once();
  EXPECT_THAT(changes, IsEmpty());
  fail_once();
  EXPECT_THAT(changes, ElementsAre("a Connection refused"));
}

TEST_F(GatewayUpstreamsTest, DoublesRestAfterFailedTrial) {
  use({.max_fails = 1, .first_rest = 1s, .max_rest = 4s});
  respond_at_once();
  unreachable = {"a"};
  hosts_for(3);
  std::vector<Nanos> rests;
  for (int i = 0; i < 6; ++i) {
    const auto before = std::ranges::count(opened, "a:80");
    Nanos rest{0};
    while (std::ranges::count(opened, "a:80") == before && rest < 6s) {
      pass(50ms);
      rest += 50ms;
      hosts_for(3);
    }
    rests.push_back(rest);
  }
  const auto is_between = [](Nanos least, Nanos most) {
    return ::testing::AllOf(::testing::Ge(least), ::testing::Le(most + 50ms));
  };
  EXPECT_THAT(rests, ElementsAre(is_between(500ms, 1s), is_between(1s, 2s), is_between(2s, 4s),
                                 is_between(2s, 4s), is_between(2s, 4s), is_between(2s, 4s)));
  EXPECT_THAT(changes, SizeIs(1));
}

TEST_F(GatewayUpstreamsTest, SendsOneRequestAfterRest) {
  use({.max_fails = 1});
  std::vector<std::unique_ptr<RawClient>> clients;
  unreachable = {"a"};
  for (int i = 0; i < 4; ++i) clients.push_back(ask(kGet));
  EXPECT_EQ(std::ranges::count(opened, "a:80"), 1);
  unreachable.clear();
  pass(2s);
  opened.clear();
  auto trial = ask(kGet);
  EXPECT_EQ(asked(), "a");
  clients.push_back(ask(kGet));
  EXPECT_NE(asked(), "aa");

  // The end of the trial by the client allows another.
  trial.reset();
  turns();
  opened.clear();
  trial = ask(kGet);
  EXPECT_EQ(asked(), "a");
  upstreams.back()->answer(kKept);
  turns();
  EXPECT_THAT(changes, ElementsAre("a Connection refused", "a is available"));
}

TEST_F(GatewayUpstreamsTest, ChoosesRestingUpstreamIfNoneIsAvailable) {
  use({.max_fails = 1, .first_rest = 20s});
  respond_at_once();
  unreachable = {"a", "b", "c"};
  for (int i = 0; i < 9; ++i) EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 502 "));
  EXPECT_THAT(changes, SizeIs(3));
  unreachable = {"a", "b"};
  EXPECT_EQ(host_for(), "c");
  EXPECT_THAT(changes, SizeIs(4));
  EXPECT_EQ(changes.back(), "c is available");
  unreachable.clear();
  EXPECT_EQ(hosts_for(3), "ccc");
  pass(21s);  // The rest of the others was not extended.
  EXPECT_NE(hosts_for(3), "ccc");
}

TEST_F(GatewayUpstreamsTest, DoesNotEndRestByEarlierRequest) {
  use({.max_fails = 1});
  const auto early = ask(kGet);
  unreachable = {"a"};
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(ask(kGet));
  EXPECT_THAT(changes, SizeIs(1));
  up(0).answer(kKept);
  turns();
  EXPECT_THAT(early->received, EndsWith("ok"));
  EXPECT_THAT(changes, SizeIs(1));
}

TEST_F(GatewayUpstreamsTest, RestsAfterTimeout) {
  use({.max_fails = 1}, {.timeout = 10s});
  const auto client = ask(kGet);
  pass(11s);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 504 "));
  EXPECT_EQ(asked(), "a");
  EXPECT_THAT(changes, SizeIs(1));
}

TEST_F(GatewayUpstreamsTest, RestsAfterTruncatedResponse) {
  use({.max_fails = 1});
  got_for("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
  EXPECT_THAT(changes, SizeIs(1));
}

TEST_F(GatewayUpstreamsTest, DoesNotRestAfterFailureOfThisMachine) {
  use({.max_fails = 1});
  unreachable = {"a"};
  open_error = make_error_code(std::errc::too_many_files_open);
  respond_at_once();
  hosts_for(6);
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(GatewayUpstreamsTest, EndsWithLoopAndServer) {
  const auto client = ask(kGet);
  owned_.reset();
  server_ = {};
  gateway_ = {};
}

}  // namespace
}  // namespace spate::testing
