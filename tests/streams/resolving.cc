// resolve(): every query has one result, whatever the name servers do.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "streams/resolving_harness.h"
#include "system/open_fds.h"
#include "tests/support/own_file.h"
#include "tests/support/random.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// ---- kinds of names

TEST_F(ResolvingTest, FindsAddressesOfBothFamilies) {
  Texts found = addresses_of("both.test");
  std::ranges::sort(found);
  EXPECT_EQ(found, (Texts{"192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80"}));
  EXPECT_EQ(server_.udp_questions, 2);
}

TEST_F(ResolvingTest, QueriesOnlyRequestedFamilies) {
  EXPECT_EQ(addresses_of("both.test", {.ipv4 = false}), Texts{"[2001:db8::1]:80"});
  EXPECT_EQ(server_.ipv6_questions, 1);
  EXPECT_EQ(addresses_of("both.test", {.ipv6 = false}), (Texts{"192.0.2.1:80", "192.0.2.2:80"}));
  EXPECT_EQ(server_.udp_questions, 2);
  EXPECT_EQ(error_of("six.test", {.ipv6 = false}), NameError::no_address);
}

// ---- the cache

ResolverOptions with_cache(ResolverOptions options, const NameCacheOptions& cache) {
  options.cache = cache;
  return options;
}

TEST_F(ResolvingTest, CachesNothingByDefault) {
  server_.names["both.test"].ttl = 3600;
  addresses_of("both.test");
  addresses_of("both.test");
  EXPECT_EQ(server_.udp_questions, 4);
}

TEST_F(ResolvingTest, CachedAnswerIsUsedForEachSpellingAndPort) {
  ASSERT_FALSE(
      configure_resolver(loop_, with_cache(with_servers({server_.address()}), {.entries = 10})));
  server_.names["both.test"].ttl = 3600;
  const Texts found = addresses_of("both.test");
  EXPECT_EQ(found.size(), 3u);
  EXPECT_EQ(addresses_of("both.test"), found);
  EXPECT_EQ(addresses_of("BOTH.test"), found);
  EXPECT_EQ(server_.udp_questions, 2);
  std::uint16_t port = 0;
  const Resolving other = resolve(
      loop_, "both.test", 443, [&](auto result) { port = must(std::move(result)).front().port(); });
  run_until(loop_, [&] { return port != 0; });
  EXPECT_EQ(port, 443);
  EXPECT_EQ(server_.udp_questions, 2);
}

TEST_F(ResolvingTest, AnswerIsCachedForItsTimeToLive) {
  ASSERT_FALSE(configure_resolver(
      loop_, with_cache(with_servers({server_.address()}), {.entries = 10, .max_ttl = 1ms})));
  addresses_of("six.test", {.ipv4 = false});  // Its TTL is zero.
  addresses_of("six.test", {.ipv4 = false});
  EXPECT_EQ(server_.udp_questions, 2);
  server_.names["six.test"].ttl = 3600;
  addresses_of("six.test", {.ipv4 = false});
  loop_.run_for(5ms);
  addresses_of("six.test", {.ipv4 = false});
  EXPECT_EQ(server_.udp_questions, 4);
}

TEST_F(ResolvingTest, MissingNamesAreCachedAndFailuresAreNot) {
  ASSERT_FALSE(configure_resolver(
      loop_, with_cache(with_servers({server_.address()}), {.entries = 10, .negative_ttl = 1h})));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(error_of("none.test", {.ipv4 = false}), NameError::no_such_host);
  EXPECT_EQ(server_.udp_questions, 1);
  server_.names["failing.test"] = {.code = 2};
  EXPECT_EQ(error_of("failing.test", {.ipv4 = false}), NameError::server_failure);
  server_.names["failing.test"] = {.ipv6 = {"2001:db8::9"}};
  EXPECT_EQ(addresses_of("failing.test", {.ipv4 = false}), Texts{"[2001:db8::9]:80"});
}

TEST_F(ResolvingTest, NegativeAnswersAreNotCachedWithZeroTime) {
  ASSERT_FALSE(configure_resolver(
      loop_, with_cache(with_servers({server_.address()}), {.entries = 10, .negative_ttl = 0ns})));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(error_of("none.test", {.ipv4 = false}), NameError::no_such_host);
  EXPECT_EQ(server_.udp_questions, 2);
}

TEST_F(ResolvingTest, CacheEvictsLeastRecentlyUsedAnswer) {
  ASSERT_FALSE(
      configure_resolver(loop_, with_cache(with_servers({server_.address()}), {.entries = 2})));
  for (const char* name : {"a.test", "b.test", "c.test"})
    server_.names[name] = {.ipv6 = {"2001:db8::1"}, .ttl = 3600};
  for (const char* name : {"a.test", "b.test", "a.test", "c.test", "a.test"})
    addresses_of(name, {.ipv4 = false});
  EXPECT_EQ(server_.udp_questions, 3);
  addresses_of("b.test", {.ipv4 = false});
  EXPECT_EQ(server_.udp_questions, 4);
}

TEST_F(ResolvingTest, NewConfigurationEmptiesCache) {
  const auto options = with_cache(with_servers({server_.address()}), {.entries = 10});
  server_.names["six.test"].ttl = 3600;
  for (int i = 0; i < 2; ++i) {
    ASSERT_FALSE(configure_resolver(loop_, options));
    addresses_of("six.test", {.ipv4 = false});
  }
  EXPECT_EQ(server_.udp_questions, 2);
  EXPECT_EQ(configure_resolver(loop_, with_cache(options, {.max_ttl = -1ns})),
            std::errc::invalid_argument);
}

TEST_F(ResolvingTest, ParsesNumericAddressesWithoutQueries) {
  EXPECT_EQ(addresses_of("192.0.2.7"), Texts{"192.0.2.7:80"});
  EXPECT_EQ(addresses_of("2001:db8::7"), Texts{"[2001:db8::7]:80"});
  EXPECT_EQ(addresses_of("fe80::7%lo"), Texts{"[fe80::7%lo]:80"});
  EXPECT_EQ(error_of("fe80::7%nowhere"), std::errc::no_such_device);
  EXPECT_EQ(error_of("192.0.2.7", {.ipv4 = false}), NameError::no_address);
  EXPECT_EQ(server_.udp_questions, 0);
}

TEST_F(ResolvingTest, RejectsInvalidHostNames) {
  const std::string label(63, 'a');
  const std::string long_name = label + '.' + label + '.' + label + '.';
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a\0b", 3), std::string("[::1]"),
        std::string(64, 'a') + ".test", std::string(255, 'a'), std::string("a..test"),
        long_name + std::string(62, 'a'), long_name + std::string(62, 'a') + '.'}) {
    EXPECT_EQ(error_of(name), NameError::bad_name) << name;
  }
  EXPECT_EQ(server_.udp_questions, 0);
  EXPECT_EQ(error_of(long_name + std::string(61, 'a')), NameError::no_such_host);
}

TEST_F(ResolvingTest, ResolvesLocalNamesToLoopbackWithoutQueries) {
  const Texts both{"[::1]:80", "127.0.0.1:80"};
  EXPECT_EQ(addresses_of("localhost"), both);
  EXPECT_EQ(addresses_of("Db.LocalHost."), both);
  EXPECT_EQ(addresses_of("localhost", {.ipv6 = false}), Texts{"127.0.0.1:80"});
  EXPECT_EQ(server_.udp_questions, 0);
  EXPECT_EQ(error_of("notlocalhost"), NameError::no_such_host);
}

TEST_F(ResolvingTest, ReadsHostsFileFirst) {
  const OwnFile hosts("hosts", "192.0.2.50 both.test\n2001:db8::50 Both.Test\n127.0.0.9 localhost");
  ResolverOptions options = with_servers({server_.address()});
  options.hosts = hosts.path();
  ASSERT_FALSE(configure_resolver(loop_, options));
  EXPECT_EQ(addresses_of("BOTH.test."), (Texts{"192.0.2.50:80", "[2001:db8::50]:80"}));
  EXPECT_EQ(addresses_of("both.test", {.ipv4 = false}), Texts{"[2001:db8::50]:80"});
  EXPECT_EQ(addresses_of("localhost"), Texts{"127.0.0.9:80"});
  EXPECT_EQ(server_.udp_questions, 0);
  EXPECT_EQ(addresses_of("six.test"), Texts{"[2001:db8::6]:80"});
}

// ---- behaviour of name servers

TEST_F(ResolvingTest, FollowsAlias) {
  server_.names["alias.test"] = {.alias = "six.test"};
  EXPECT_EQ(addresses_of("alias.test"), Texts{"[2001:db8::6]:80"});
}

TEST_F(ResolvingTest, DistinguishesFailures) {
  server_.names["failure.test"] = {.code = 2};
  server_.names["refused.test"] = {.code = 5};
  server_.names["nonsense.test"] = {.is_nonsense = true};
  server_.names["empty.test"] = {};
  EXPECT_EQ(error_of("nobody.test"), NameError::no_such_host);
  EXPECT_EQ(error_of("empty.test"), NameError::no_address);
  EXPECT_EQ(error_of("failure.test"), NameError::server_failure);
  EXPECT_EQ(error_of("refused.test"), NameError::server_failure);
  EXPECT_EQ(error_of("nonsense.test"), NameError::bad_answer);
  for (int i = 1; i <= 7; ++i)
    EXPECT_NE(make_error_code(static_cast<NameError>(i)).message(), "unknown error");
  EXPECT_EQ(name_category().message(99), "unknown error");
  EXPECT_STREQ(name_category().name(), "spate.names");
}

// One family has no address, and the other query failed: an address may exist.
TEST_F(ResolvingTest, DistinguishesFailureFromNoAddress) {
  server_.names["four.fails"] = {.ipv4_code = 2};
  server_.names["six.fails"] = {.ipv6_code = 2};
  for (const std::string_view name : {"four.fails", "six.fails"})
    EXPECT_EQ(error_of(name), NameError::server_failure) << name;
  server_.names["six.fails"] = {.ipv4 = {"192.0.2.1"}, .ipv6_code = 2};
  EXPECT_EQ(addresses_of("six.fails"), Texts{"192.0.2.1:80"});
}

TEST_F(ResolvingTest, TimesOutIfNoServerResponds) {
  NameServer second(loop_);
  second.names["silent.test"] = {.is_silent = true};
  ASSERT_FALSE(configure_resolver(loop_, impatient({server_.address(), second.address()}, 2)));
  EXPECT_EQ(error_of("silent.test", {.ipv6 = false}), NameError::timeout);
  turn();
  EXPECT_EQ(server_.udp_questions, 2);
  EXPECT_EQ(second.udp_questions, 2);
}

TEST_F(ResolvingTest, ReportsUnreachableServers) {
  Address nobody;
  {
    nobody = NameServer(loop_).address();
  }
  ASSERT_FALSE(configure_resolver(loop_, with_servers({nobody})));
  EXPECT_EQ(error_of("both.test"), NameError::unreachable);
}

TEST_F(ResolvingTest, RecoversAfterTemporaryErrors) {
  server_.names["failure.test"] = {.code = 2};
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::send, 1, EHOSTUNREACH, 1);
    const FaultScope scope(plan);
    EXPECT_EQ(error_of("both.test"), NameError::unreachable);
  }
  EXPECT_EQ(error_of("failure.test"), NameError::server_failure);
}

TEST_F(ResolvingTest, QueriesNextServerAfterFailureOrTimeout) {
  NameServer first(loop_);
  first.names["both.test"] = {.code = 2};
  first.names["six.test"] = {.is_silent = true};
  ASSERT_FALSE(configure_resolver(loop_, impatient({first.address(), server_.address()}, 10)));
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
  EXPECT_EQ(addresses_of("six.test"), Texts{"[2001:db8::6]:80"});
}

TEST_F(ResolvingTest, QueriesServerAtIpv6Address) {
  NameServer six(loop_, Address::loopback_ipv6(0));
  six.names["six.test"] = {.ipv6 = {"2001:db8::66"}};
  ASSERT_FALSE(configure_resolver(loop_, with_servers({six.address()})));
  EXPECT_EQ(addresses_of("six.test"), Texts{"[2001:db8::66]:80"});
}

TEST_F(ResolvingTest, RepeatsQueryOverTcpAfterTruncatedResponse) {
  NameEntry& entry = server_.names["long.test"] = {.is_long = true};
  for (int i = 0; i < 100; ++i) entry.ipv4.push_back("192.0.2." + std::to_string(i));
  EXPECT_EQ(addresses_of("long.test", {.ipv6 = false}).size(), 100u);
  EXPECT_EQ(server_.tcp_questions, 1);
  // Failures arrive over TCP, too.
  entry = {.code = 2, .is_long = true};
  EXPECT_EQ(error_of("long.test", {.ipv6 = false}), NameError::server_failure);
}

TEST_F(ResolvingTest, ReportsServerFailureAfterTcpEof) {
  server_.names["long.test"] = {.is_long = true, .hangs_up = true};
  EXPECT_EQ(error_of("long.test", {.ipv6 = false}), NameError::server_failure);
}

TEST_F(ResolvingTest, ReportsServerFailureAfterTcpReset) {
  server_.names["long.test"] = {.is_long = true, .resets = true};
  EXPECT_EQ(error_of("long.test", {.ipv6 = false}), NameError::server_failure);
}

TEST_F(ResolvingTest, IgnoresResponsesToOtherQueries) {
  server_.names["both.test"].is_forged = true;
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
  EXPECT_EQ(server_.udp_questions, 2);
}

TEST_F(ResolvingTest, ReportsOneResultForAnyResponse) {
  Random random(5);
  int spoilt = 0;
  server_.mangle = [&](std::string& answer) {
    ++spoilt;
    if (random.one_in(4)) answer.resize(random.below(answer.size() + 8));
    for (std::size_t i = random.below(4); i > 0 && !answer.empty(); --i)
      answer[random.below(answer.size())] = static_cast<char>(random.below(256));
  };
  server_.names["alias.test"] = {.alias = "both.test"};
  ASSERT_FALSE(configure_resolver(loop_, impatient({server_.address()}, 1)));
  for (int i = 0; i < 150; ++i) {
    const int before = results_;
    const Resolving resolving = ask(i % 2 == 0 ? "both.test" : "alias.test");
    run_until(loop_, [&] { return results_ > before; });
    turn(2);
    EXPECT_EQ(results_, before + 1);
    EXPECT_NE(addresses_.empty(), !error_);
  }
  EXPECT_GT(spoilt, 100);
}

TEST_F(ResolvingTest, TimesOut) {
  const Nanos before = loop_.now();
  EXPECT_EQ(error_of("silent.test", {.timeout = 20ms}), NameError::timeout);
  EXPECT_GE(loop_.now() - before, 20ms);
  for (const Nanos timeout : {Nanos{5s}, Nanos::max(), Nanos::min()})
    EXPECT_EQ(addresses_of("slow.test", {.timeout = timeout}), Texts{"192.0.2.9:80"});
}

// More queries than a socket's buffer holds: lost ones are sent again.
TEST_F(ResolvingTest, RunsManyQueriesAtOnce) {
  ASSERT_FALSE(configure_resolver(loop_, impatient({server_.address()}, 10)));
  std::list<Resolving> all;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "many" + std::to_string(i) + ".test";
    if (i % 2 == 0) server_.names[name] = {.ipv4 = {"192.0.2.4"}};
    all.push_back(ask(name));
  }
  run_until(loop_, [&] { return results_ == 200; });
  turn();
  EXPECT_EQ(results_, 200);
}

// ---- cancelling and destroying

TEST_F(ResolvingTest, IsNotCalledBackAfterCancellation) {
  const std::int64_t active = loop_.active_count();
  const std::vector<int> fds = open_fds();
  for (const std::string_view name : {"both.test", "slow.test", "silent.test", "nobody.test",
                                      "192.0.2.1", "localhost", "", "a..b"}) {
    for (int turns = 0; turns < 6; ++turns) {
      Resolving resolving = ask(name);
      const int before = results_;
      for (int i = 0; i < turns && results_ == before; ++i) loop_.run(Run::no_wait);
      const int after = results_;
      resolving.cancel();
      turn();
      EXPECT_EQ(results_, after) << name << " after " << turns << " turns";
    }
  }
  become_quiet(active);
  EXPECT_EQ(open_fds(), fds);
}

TEST_F(ResolvingTest, ContinuesForOthersWhenOneIsCancelled) {
  Resolving first = ask("slow.test");
  const Resolving second = ask("slow.test");
  turn();
  first.cancel();
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_EQ(addresses_, Texts{"192.0.2.9:80"});
}

TEST_F(ResolvingTest, DropsCancelledQueriesAfterLastResponse) {
  const std::int64_t active = loop_.active_count();
  Resolving silent = ask("silent.test");
  const Resolving second = ask("both.test");
  silent.cancel();
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_EQ(loop_.active_count(), active);
}

TEST_F(ResolvingTest, MayBeDestroyedInsideItsCallback) {
  for (const std::string_view name : {"both.test", "nobody.test", "192.0.2.1", "", "silent.test"}) {
    std::optional<Resolving> resolving;
    int calls = 0;
    resolving.emplace(resolve(loop_, name, 80,
                              [&](Result<std::vector<Address>>) {
                                ++calls;
                                resolving.reset();
                              },
                              {.timeout = 30ms}));
    run_until(loop_, [&] { return calls == 1; });
    EXPECT_FALSE(resolving.has_value());
  }
}

TEST_F(ResolvingTest, HasOneResultThoughItsCallbackRunsLoop) {
  for (const bool is_destroyed : {false, true}) {
    for (const std::string_view name : {"both.test", "nobody.test", "::1", "", "silent.test"}) {
      std::optional<Resolving> resolving;
      int calls = 0;
      bool is_over = false;
      resolving.emplace(resolve(loop_, name, 80,
                                [&](Result<std::vector<Address>>) {
                                  ++calls;
                                  if (is_destroyed) resolving.reset();
                                  turn();
                                  resolving.reset();
                                  turn();
                                  is_over = true;
                                },
                                {.timeout = 30ms}));
      run_until(loop_, [&] { return is_over; });
      EXPECT_EQ(calls, 1) << name;
    }
  }
}

// ---- family by family

TEST_F(ResolvingTest, ReportsEachFamilyOnArrival) {
  std::string log;
  const Resolving resolving = each(
      "slow.test",
      [&](std::vector<Address> addresses) {
        for (const Address& address : addresses) log += address.to_string() + ' ';
      },
      log);
  EXPECT_EQ(log, "");
  run_until(loop_, [&] { return log.ends_with("done"); });
  EXPECT_EQ(log, "192.0.2.9:80 done");
  log.clear();
  server_.names["half.test"] = {
      .ipv6 = {"2001:db8::1"}, .ipv4 = {"192.0.2.1", "192.0.2.2"}, .ipv4_delay = 40ms};
  int calls = 0;
  const Resolving half = each(
      "half.test",
      [&](std::vector<Address> addresses) {
        EXPECT_EQ(addresses.size(), ++calls == 1 ? 1u : 2u);
        log += addresses[0].family() == Address::Family::ipv6 ? "six " : "four ";
      },
      log);
  run_until(loop_, [&] { return log.ends_with("done"); });
  EXPECT_EQ(log, "six four done");
}

TEST_F(ResolvingTest, ReportsOnlyEndWithoutAddresses) {
  for (const std::string_view name : {"nobody.test", "", "silent.test"}) {
    std::string log;
    const auto fail = [](const std::vector<Address>&) { FAIL(); };
    const Resolving resolving = each(name, fail, log, {.timeout = 30ms});
    run_until(loop_, [&] { return !log.empty(); });
    turn();
    EXPECT_EQ(log, name.empty() ? "bad_name" : name == "nobody.test" ? "no_such_host" : "timeout");
  }
}

TEST_F(ResolvingTest, ReportsTimeoutOfOtherFamily) {
  server_.names["late.test"] = {
      .ipv6 = {"2001:db8::1"}, .ipv4 = {"192.0.2.1"}, .ipv4_delay = 10min};
  std::string log;
  const Resolving resolving = each(
      "late.test", [&](const std::vector<Address>&) { log += "some "; }, log, {.timeout = 100ms});
  run_until(loop_, [&] { return log.size() > 5; });
  EXPECT_EQ(log, "some timeout");
}

TEST_F(ResolvingTest, MayBeCancelledBetweenFamilies) {
  for (const bool runs_the_loop : {false, true}) {
    std::string log;
    std::optional<Resolving> resolving;
    resolving.emplace(each(
        "both.test",
        [&](const std::vector<Address>&) {
          if (!resolving) return;
          if (runs_the_loop) turn();
          resolving.reset();
          turn();
          log += "some ";
        },
        log));
    run_until(loop_, [&] { return log.ends_with("some "); });
    turn(20);
    if (!runs_the_loop) EXPECT_EQ(log, "some ");
    EXPECT_FALSE(resolving);
  }
}

TEST_F(ResolvingTest, EndsOnceThoughCallbackRunsLoop) {
  std::string log;
  const Resolving resolving = each(
      "192.0.2.1",
      [&](const std::vector<Address>&) {
        turn();
        log += "some ";
        turn();
      },
      log);
  run_until(loop_, [&] { return log.size() > 5; });
  turn();
  EXPECT_EQ(log, "some done");
}

TEST_F(ResolvingTest, MayResolveInsideItsCallback) {
  Resolving resolving;
  int calls = 0;
  std::function<void()> again = [&] {
    resolving = resolve(loop_, calls % 2 == 0 ? "both.test" : "nobody.test", 80,
                        [&](Result<std::vector<Address>>) {
                          if (++calls < 10) again();
                        });
  };
  again();
  run_until(loop_, [&] { return calls == 10; });
}

TEST_F(ResolvingTest, MayOutliveItsLoop) {
  const std::vector<int> fds = open_fds();
  for (const std::string_view name : {"silent.test", "both.test", "192.0.2.1"}) {
    for (int turns = 0; turns < 3; ++turns) {
      std::unique_ptr<Loop> loop = *Loop::create();
      ASSERT_FALSE(configure_resolver(*loop, with_servers({server_.address()})));
      const int before = results_;
      std::list<Resolving> all;
      for (int i = 0; i < 3; ++i) all.push_back(resolve(*loop, name, 80, note()));
      all.pop_front();
      for (int i = 0; i < turns; ++i) loop->run(Run::no_wait);
      const int after = results_;
      loop.reset();
      all.clear();
      EXPECT_EQ(results_, after);
      EXPECT_LE(results_ - before, 2);
    }
  }
  EXPECT_EQ(open_fds(), fds);
}

TEST_F(ResolvingTest, SurvivesRandomQueriesAndCancellations) {
  Random random(7);
  const std::string_view names[] = {"both.test",   "six.test",  "silent.test", "slow.test",
                                    "nobody.test", "localhost", "192.0.2.1"};
  const std::int64_t active = loop_.active_count();
  std::vector<Resolving> all(16);
  int asked = 0;
  for (int i = 0; i < 3000; ++i) {
    Resolving& one = all[random.below(all.size())];
    if (random.one_in(3)) {
      one.cancel();
    } else {
      one = resolve(loop_, names[random.below(std::size(names))], 80, note(),
                    {.timeout = random.one_in(4) ? 1ms : 0ms});
      ++asked;
    }
    if (random.one_in(2)) loop_.run(Run::no_wait);
  }
  all.clear();
  turn();
  EXPECT_LE(results_, asked);
  EXPECT_GT(results_, 0);
  become_quiet(active);
}

}  // namespace
}  // namespace spate::testing
