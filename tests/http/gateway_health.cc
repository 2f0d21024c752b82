// Gateway with UpstreamOptions::health_check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "http/gateway_harness.h"
#include "spate/http/error.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"
#include "streams/harness.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using http::GatewayOptions;
using http::HealthCheck;
using http::Method;
using http::UpstreamOptions;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

std::string response_of(int status) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 2\r\n\r\nok";
}

class GatewayHealthTest : public GatewayTest {
 protected:
  GatewayHealthTest() {
    on_request = [this](http::Exchange exchange) { gateway_.forward(std::move(exchange)); };
    // A check names its upstream in Host; a request keeps the Host of its client.
    on_upstream = [this](Peer& peer) {
      if (peer.received.starts_with("GET /health ")) {
        const std::string host = peer.received.substr(peer.received.find("Host: ") + 6, 1);
        checked += host;
        if (silent.contains(host)) return;
        peer.answer(answers.contains(host) ? answers[host] : response_of(200));
        peer.heard();
      } else if (!peer.heard().empty()) {
        peer.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
      }
    };
  }

  // Makes a gateway with the upstreams a, b and c, whose first checks have ended.
  void use(HealthCheck check = {}, UpstreamOptions upstreams = {}, GatewayOptions options = {}) {
    if (check.path == "/") check.path = "/health";
    upstreams.servers = {{"http://a"}, {"http://b"}, {"http://c"}};
    upstreams.health_check = std::move(check);
    upstreams.on_change = [this](const http::UpstreamChange& change) {
      std::string text(change.url.substr(7, 1));
      if (change.is_available) {
        text += " is available";
      } else if (change.status) {
        text += " " + std::to_string(http::code_of(*change.status));
        EXPECT_EQ(change.error, http::HttpError::unhealthy_status);
      } else {
        text += " " + change.error.message();
      }
      changes.push_back(text + (change.is_healthy ? "" : ", unhealthy"));
    };
    options.upstreams = std::move(upstreams);
    make_gateway(std::move(options));
    turns();
  }
  // Runs until so many more checks of each upstream have ended.
  void run_checks(int rounds) {
    for (int i = 0; i < rounds; ++i) pass(5500ms);
  }
  std::string hosts_for(int count) {
    std::string hosts;
    for (int i = 0; i < count; ++i) {
      EXPECT_THAT(ask(kGet)->received, StartsWith("HTTP/1.1 200 "));
      hosts += opened.back().substr(0, 1);
    }
    return hosts;
  }
  bool is_healthy(std::size_t upstream) const { return gateway_.upstreams()[upstream].is_healthy; }

  std::map<std::string, std::string> answers;  // To checks, by host.
  std::set<std::string> silent;
  std::string checked;
  std::vector<std::string> changes;
};

TEST_F(GatewayHealthTest, RejectsInvalidOptions) {
  const auto error_of = [&](HealthCheck check) {
    GatewayOptions options;
    options.upstreams = UpstreamOptions{.servers = {{"http://a"}}, .health_check = check};
    const auto gateway = http::Gateway::create(loop_, std::move(options));
    return gateway ? std::error_code() : gateway.error();
  };
  for (const HealthCheck& valid :
       {HealthCheck{}, HealthCheck{.method = Method::head}, HealthCheck{.method = Method::options},
        HealthCheck{.path = "/a?b=c"}, HealthCheck{.host = "app.example:8080"},
        HealthCheck{.interval = 1s, .timeout = 1s},
        HealthCheck{.healthy = {{200, 200}, {599, 599}}}})
    EXPECT_EQ(error_of(valid), std::error_code());
  const std::vector<HealthCheck> invalid{
      {.method = Method::post},
      {.method = Method::other},
      {.path = ""},
      {.path = "health"},
      {.path = "*"},
      {.path = "/a b"},
      {.path = "/a\r\nX: y"},
      {.host = "a b"},
      {.host = "a\r\nX: y"},
      {.host = "a/"},
      {.host = "a/b"},
      {.host = "a?b"},
      {.host = "user@a"},
      {.interval = 1s, .timeout = 1s + 1ns},
      {.interval = Nanos::max()},
      {.timeout = 0s},
      {.timeout = -1s},
      {.fall = 0},
      {.rise = 0},
      {.healthy = {}},
      {.healthy = {{100, 200}}},
      {.healthy = {{300, 200}}},
      {.healthy = {{200, 600}}},
  };
  for (std::size_t i = 0; i < invalid.size(); ++i)
    EXPECT_EQ(error_of(invalid[i]), std::errc::invalid_argument) << i;
}

// ---- the requests

TEST_F(GatewayHealthTest, ChecksEachUpstreamAtOnceAndAtInterval) {
  use();
  EXPECT_EQ(checked, "abc");
  pass(4999ms);
  EXPECT_EQ(checked, "abc");
  pass(501ms);
  EXPECT_EQ(checked, "abcabc");
  run_checks(10);
  EXPECT_THAT(checked.size(), AllOf(Ge(33u), Le(36u)));
  EXPECT_EQ(gateway_.upstreams()[0].checks, checked.size() / 3);
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(GatewayHealthTest, SendsRequestOfOptionsAndCloses) {
  GatewayOptions options;
  options.client.user_agent = "gate/1";
  options.client.fields.add("X-Key", "k");
  on_upstream = nullptr;
  use({.method = Method::head, .path = "/health?deep=1", .host = "app.example"}, {},
      std::move(options));
  EXPECT_THAT(
      up(0).received,
      AllOf(StartsWith("HEAD /health?deep=1 HTTP/1.1\r\n"), HasSubstr("\r\nHost: app.example\r\n"),
            HasSubstr("\r\nUser-Agent: gate/1\r\n"), HasSubstr("\r\nX-Key: k\r\n")));
  up(0).answer("HTTP/1.1 204 No Content\r\n\r\n");
  turns();
  EXPECT_TRUE(up(0).is_ended);
  EXPECT_EQ(gateway_.upstreams()[0].failed_checks, 0u);
}

TEST_F(GatewayHealthTest, SendsProxyHeaderWithoutAddresses) {
  GatewayOptions options;
  options.proxy_protocol = ProxyVersion::v1;
  on_upstream = nullptr;
  use({}, {}, std::move(options));
  EXPECT_THAT(up(0).received, StartsWith("PROXY UNKNOWN\r\nGET /health HTTP/1.1\r\n"));
}

TEST_F(GatewayHealthTest, DoesNotWaitForConnectionOfRequests) {
  GatewayOptions options;
  options.client.max_connections = 1;
  options.client.max_per_origin = 1;
  on_upstream = nullptr;
  use({}, {}, std::move(options));
  const auto client = ask(kGet);
  std::size_t requests = 0;
  for (const auto& each : upstreams) requests += each->received.starts_with("GET / ");
  EXPECT_EQ(requests, 1u);
  EXPECT_TRUE(std::ranges::any_of(
      upstreams, [](const auto& each) { return each->received.starts_with("GET /health "); }));
}

// ---- the results

TEST_F(GatewayHealthTest, FirstCheckDecides) {
  answers["b"] = response_of(500);
  use();
  EXPECT_THAT(changes, ElementsAre("b 500, unhealthy"));
  EXPECT_FALSE(is_healthy(1));
  EXPECT_FALSE(gateway_.upstreams()[1].is_available);
  EXPECT_EQ(gateway_.upstreams()[1].outages, 1u);
  EXPECT_EQ(hosts_for(6), "acacac");
}

TEST_F(GatewayHealthTest, DecidesAfterFallAndRise) {
  use({.fall = 3, .rise = 2});
  answers["b"] = response_of(503);
  run_checks(2);
  EXPECT_THAT(hosts_for(3), HasSubstr("b"));
  answers.clear();
  run_checks(1);  // Begins the count again.
  answers["b"] = response_of(503);
  run_checks(2);
  EXPECT_THAT(changes, IsEmpty());
  run_checks(1);
  EXPECT_THAT(changes, ElementsAre("b 503, unhealthy"));
  EXPECT_THAT(hosts_for(6), Not(HasSubstr("b")));

  answers.clear();
  run_checks(1);
  answers["b"] = response_of(503);
  run_checks(1);  // Begins the count again.
  answers.clear();
  run_checks(1);
  EXPECT_THAT(hosts_for(6), Not(HasSubstr("b")));
  run_checks(1);
  EXPECT_THAT(changes, ElementsAre("b 503, unhealthy", "b is available"));
  EXPECT_THAT(hosts_for(3), HasSubstr("b"));
  EXPECT_EQ(gateway_.upstreams()[1].failed_checks, 6u);
}

TEST_F(GatewayHealthTest, AcceptsHealthyStatusesOnly) {
  answers = {{"a", response_of(200)}, {"b", response_of(302)}, {"c", response_of(418)}};
  use({.healthy = {{201, 299}, {302, 302}, {400, 418}}});
  EXPECT_THAT(changes, ElementsAre("a 200, unhealthy"));
}

TEST_F(GatewayHealthTest, FailsWithoutCompleteResponse) {
  answers = {{"a", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"}, {"b", "nonsense\r\n\r\n"}};
  unreachable = {"c"};
  use();
  EXPECT_THAT(changes, ElementsAre("c Connection refused, unhealthy",
                                   "b the server's response is malformed, unhealthy"));
  pass(2s);
  EXPECT_EQ(changes.back(), "a " + make_error_code(Error::deadline).message() + ", unhealthy");
}

TEST_F(GatewayHealthTest, FailsAtTimeout) {
  silent = {"b"};
  use({.timeout = 2s});
  pass(1999ms);
  EXPECT_THAT(changes, IsEmpty());
  pass(1ms);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(changes[0], AllOf(StartsWith("b "), ::testing::EndsWith(", unhealthy")));
  EXPECT_TRUE(up(1).is_closed || up(1).is_ended);
  silent.clear();
  run_checks(2);
  EXPECT_TRUE(is_healthy(1));
}

TEST_F(GatewayHealthTest, ContinuesAfterTimeoutOfWholeInterval) {
  silent = {"b"};
  use({.interval = 2s, .timeout = 2s});
  for (int i = 0; i < 10; ++i) pass(2200ms);
  EXPECT_GE(std::ranges::count(checked, 'a'), 6);
  EXPECT_GE(std::ranges::count(checked, 'b'), 6);
}

TEST_F(GatewayHealthTest, CutsLongBodyOff) {
  answers["b"] = "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + std::string(70'000, 'x');
  use();
  EXPECT_TRUE(up(1).is_ended || up(1).is_closed);
  EXPECT_EQ(gateway_.upstreams()[1].checks, 1u);
  EXPECT_EQ(gateway_.upstreams()[1].failed_checks, 0u);
  run_checks(1);
  EXPECT_EQ(gateway_.upstreams()[1].checks, 2u);
}

TEST_F(GatewayHealthTest, FailureOfThisMachineHasNoResult) {
  unreachable = {"a", "b", "c"};
  open_error = make_error_code(std::errc::too_many_files_open);
  use();
  run_checks(4);
  EXPECT_EQ(gateway_.upstreams()[0].checks, 0u);
  EXPECT_THAT(changes, IsEmpty());
  unreachable = {"b"};
  open_error = make_error_code(std::errc::connection_refused);
  run_checks(1);
  EXPECT_THAT(changes, ElementsAre("b Connection refused, unhealthy"));
}

// Without memory a check has no result, and later checks follow. Creating fails with ENOMEM.
TEST_F(GatewayHealthTest, SurvivesLackOfMemory) {
  bool has_failed = true;
  for (std::uint64_t nth = 1; has_failed; ++nth) {
    ASSERT_LT(nth, 1000u);
    std::error_code error;
    {
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
      const FaultScope scope(plan);
      GatewayOptions options;
      options.client.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
        auto pair = Stream::memory_pair(loop_);
        if (!pair) return std::unexpected(pair.error());
        upstreams.push_back(std::make_unique<Peer>(std::move(pair->second)));
        upstreams.back()->on_request = [](Peer& peer) { peer.answer(response_of(200)); };
        return std::move(pair->first);
      };
      options.upstreams = UpstreamOptions{.servers = {{"http://a"}}};
      options.upstreams->health_check = HealthCheck{};
      auto made = http::Gateway::create(loop_, std::move(options));
      error = made ? std::error_code() : made.error();
      if (made) gateway_ = std::move(*made);
      turns();
      has_failed = plan.failures(SystemCall::allocate) > 0;
    }
    if (error) {
      EXPECT_EQ(error, std::errc::not_enough_memory) << nth;
      continue;
    }
    run_checks(3);
    EXPECT_GE(gateway_.upstreams()[0].checks, 2u) << nth;
    EXPECT_TRUE(is_healthy(0)) << nth;
  }
}

// ---- the choice

TEST_F(GatewayHealthTest, ChoosesUnhealthyIfAllAre) {
  answers = {{"a", response_of(500)}, {"b", response_of(500)}, {"c", response_of(500)}};
  use();
  EXPECT_EQ(changes.size(), 3u);
  EXPECT_EQ(hosts_for(3), "abc");
  answers.erase("b");
  run_checks(2);
  EXPECT_EQ(hosts_for(3), "bbb");
}

TEST_F(GatewayHealthTest, PrefersRestingToUnhealthy) {
  answers = {{"a", response_of(500)}, {"b", response_of(500)}};
  use({}, {.max_fails = 1, .first_rest = 30s});
  unreachable = {"c"};
  EXPECT_THAT(ask(kGet)->received, StartsWith("HTTP/1.1 200 "));  // Retried at another.
  EXPECT_EQ(changes.back(), "c Connection refused");
  unreachable.clear();
  EXPECT_EQ(hosts_for(1), "c");
  EXPECT_EQ(changes.back(), "c is available");
}

TEST_F(GatewayHealthTest, RecoveryEndsRest) {
  use({.fall = 1, .rise = 1}, {.max_fails = 1, .first_rest = 30s});
  unreachable = {"b"};
  hosts_for(3);
  EXPECT_THAT(changes, ElementsAre("b Connection refused"));
  run_checks(1);
  EXPECT_FALSE(is_healthy(1));
  EXPECT_EQ(changes.size(), 1u);  // It was not available before.
  unreachable.clear();
  run_checks(1);
  EXPECT_EQ(changes.back(), "b is available");
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_THAT(hosts_for(3), HasSubstr("b"));
}

TEST_F(GatewayHealthTest, SuccessfulRequestDoesNotMakeHealthy) {
  answers = {{"a", response_of(500)}, {"b", response_of(500)}, {"c", response_of(500)}};
  use({}, {.max_fails = 1, .first_rest = 1s});
  unreachable = {"a"};
  hosts_for(3);
  unreachable.clear();
  pass(2s);
  hosts_for(6);
  EXPECT_EQ(changes.size(), 3u);
  EXPECT_FALSE(gateway_.upstreams()[0].is_available);
}

// ---- the end

TEST_F(GatewayHealthTest, ChecksDoNotKeepLoopAlive) {
  const std::int64_t before = loop_.active_count();
  use();
  EXPECT_EQ(loop_.active_count(), before);
  silent = {"b"};
  pass(5500ms);
  EXPECT_GT(loop_.active_count(), before);  // For at most the timeout.
  pass(2s);
  EXPECT_EQ(loop_.active_count(), before);
  gateway_ = {};
  EXPECT_EQ(loop_.active_count(), before);
}

TEST_F(GatewayHealthTest, EndsWithGatewayDuringCheck) {
  silent = {"a", "b", "c"};
  use();
  gateway_ = {};
  turns();
  EXPECT_TRUE(up(0).is_closed || up(0).is_ended);
  run_checks(2);
  EXPECT_EQ(checked, "abc");
}

TEST_F(GatewayHealthTest, EndsWithGatewayDestroyedInCallback) {
  use();
  on_request = [this](http::Exchange exchange) {
    gateway_.forward(std::move(exchange), "http://gone", [this](std::error_code) {
      gateway_ = {};
      return std::string();
    });
  };
  unreachable = {"gone"};
  silent = {"a"};
  const auto client = connect();
  client->send(kGet);
  clock_.advance(5500ms);
  turns();
  run_checks(2);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 503 "));
}

TEST_F(GatewayHealthTest, ContinuesWithMovedGateway) {
  use();
  http::Gateway moved = std::move(gateway_);
  run_checks(1);
  EXPECT_EQ(moved.upstreams()[0].checks, 2u);
}

TEST_F(GatewayHealthTest, EndsWithLoop) {
  silent = {"a"};
  use();
  owned_.reset();
  gateway_ = {};
}

TEST_F(GatewayHealthTest, EndsWithLoopBetweenChecks) {
  use();
  owned_.reset();
  gateway_ = {};
}

// ---- real sockets

class GatewayHealthSockets : public ::testing::Test {
 protected:
  void serve(http::ServerOptions options) {
    server_ = must(http::serve(
        *loop_, Address::loopback_ipv4(0),
        [this](http::Exchange exchange) {
          versions.push_back(exchange.request().version());
          exchange.respond(is_well ? http::Status::ok : http::Status::service_unavailable);
        },
        std::move(options)));
  }
  void check(const std::string& url, GatewayOptions options = {}) {
    options.upstreams = UpstreamOptions{.servers = {{url}}};
    options.upstreams->health_check = HealthCheck{.interval = 2s};
    gateway_ = must(http::Gateway::create(*loop_, std::move(options)));
    run_until(*loop_, [&] { return reading().checks > 0; });
  }
  http::UpstreamMetrics reading() const { return gateway_.upstreams().front(); }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  bool is_well = true;
  std::vector<http::Version> versions;
  http::Server server_;
  http::Gateway gateway_;
};

TEST_F(GatewayHealthSockets, ChecksByHttp1) {
  serve({});
  check("http://" + server_.address().to_string());
  EXPECT_TRUE(reading().is_healthy);
  EXPECT_THAT(versions, ElementsAre(http::Version::http_1_1));
}

TEST_F(GatewayHealthSockets, ChecksByHttp2OverTls) {
  http::ServerOptions options;
  options.http2 = must(http::Http2::create());
  options.tls = must(
      TlsContext::server({.identities = {test_server().identity()}, .alpn = {"h2", "http/1.1"}}));
  serve(std::move(options));
  GatewayOptions gateway;
  gateway.client.http2 = must(http::Http2::create());
  gateway.client.tls = must(TlsContext::client(
      {.system_cas = false, .ca = test_root().pem(), .alpn = {"h2", "http/1.1"}}));
  check("https://localhost:" + std::to_string(server_.address().port()), std::move(gateway));
  EXPECT_TRUE(reading().is_healthy);
  EXPECT_THAT(versions, ElementsAre(http::Version::http_2));
  run_until(*loop_, [&] { return server_.metrics().connections == 0; });
}

TEST_F(GatewayHealthSockets, CertificateForAnotherNameIsUnhealthy) {
  http::ServerOptions options;
  options.tls = must(TlsContext::server({.identities = {test_server().identity()}}));
  serve(std::move(options));
  GatewayOptions gateway;
  gateway.client.tls = must(TlsContext::client({.system_cas = false}));
  check("https://localhost:" + std::to_string(server_.address().port()), std::move(gateway));
  EXPECT_FALSE(reading().is_healthy);
}

TEST_F(GatewayHealthSockets, NameWithoutAddressIsUnhealthy) {
  check("http://nothing.invalid:1");
  EXPECT_FALSE(reading().is_healthy);
}

}  // namespace
}  // namespace spate::testing
