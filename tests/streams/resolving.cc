// resolve(): every query has one result, whatever the name servers do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/net/resolver.h"
#include "streams/harness.h"
#include "sys/descriptor.h"
#include "tests/support/missing.h"
#include "tests/support/name_server.h"
#include "tests/support/open_fds.h"
#include "tests/support/own_file.h"
#include "tests/support/random.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class ResolvingTest : public ::testing::Test {
 protected:
  ResolvingTest() {
    EXPECT_FALSE(configure_resolver(loop_, with_servers({server_.address()})));
    server_.names["both.test"] = {.ipv6 = {"2001:db8::1"}, .ipv4 = {"192.0.2.1", "192.0.2.2"}};
    server_.names["six.test"] = {.ipv6 = {"2001:db8::6"}};
    server_.names["silent.test"] = {.is_silent = true};
    server_.names["slow.test"] = {.ipv4 = {"192.0.2.9"}, .ipv6_delay = 20ms, .ipv4_delay = 40ms};
  }

  // Enough time for an answer on any machine.
  static ResolverOptions with_servers(std::vector<Address> servers) {
    return {.servers = std::move(servers),
            .resolv_conf = "/dev/null",
            .hosts = "/dev/null",
            .timeout = 1min};
  }
  static ResolverOptions impatient(std::vector<Address> servers, int tries) {
    ResolverOptions options = with_servers(std::move(servers));
    options.timeout = 10ms;
    options.tries = tries;
    return options;
  }

  OnResolved note() {
    return [this](Result<std::vector<Address>> result) {
      ++results_;
      addresses_.clear();
      error_ = result ? std::error_code() : result.error();
      if (!result) return;
      for (const Address& address : *result) addresses_.push_back(address.to_string());
    };
  }
  Resolving ask(std::string_view host, const ResolveOptions& options = {}) {
    const int before = results_;
    Resolving resolving = resolve(loop_, host, 80, note(), options);
    EXPECT_EQ(results_, before);  // Never from inside the call.
    return resolving;
  }
  // Appends the final result to `log`.
  Resolving each(std::string_view host, OnAddresses on_addresses, std::string& log,
                 const ResolveOptions& options = {}) {
    const auto done = [&log](std::error_code error) {
      log += !error                             ? "done"
             : error == NameError::timeout      ? "timeout"
             : error == NameError::no_such_host ? "no_such_host"
             : error == NameError::bad_name     ? "bad_name"
                                                : error.message();
    };
    return resolve_each(loop_, host, 80, std::move(on_addresses), done, options);
  }
  // Returns the addresses of a name, or the error.
  std::vector<std::string> addresses_of(std::string_view host, const ResolveOptions& options = {}) {
    const int before = results_;
    const Resolving resolving = ask(host, options);
    run_until(loop_, [&] { return results_ > before; });
    return addresses_;
  }
  std::error_code error_of(std::string_view host, const ResolveOptions& options = {}) {
    EXPECT_TRUE(addresses_of(host, options).empty());
    return error_;
  }
  void turn(int times = 5) {
    for (int i = 0; i < times; ++i) loop_.run(Run::no_wait);
  }

  // Runs until no more is active than before: the server may still delay an answer.
  void become_quiet(std::int64_t active) {
    while (loop_.active_count() > active) loop_.run(Run::once);
    EXPECT_EQ(loop_.active_count(), active);
  }

  using Texts = std::vector<std::string>;

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  NameServer server_{loop_};
  int results_ = 0;
  Texts addresses_;
  std::error_code error_;
};

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

// ---- the configuration

// The child opens other sockets, and sends the queries again. The parent runs the server.
TEST_F(ResolvingTest, RepeatsQueriesInChildOfFork) {
  std::optional<NameServer> server(std::in_place, loop_);
  server->names["held.test"] = {.ipv4 = {"192.0.2.7"}, .ipv6_delay = 10ms, .ipv4_delay = 100ms};
  EXPECT_FALSE(configure_resolver(loop_, with_servers({server->address()})));
  const Resolving resolving = ask("held.test");
  run_until(loop_, [&] { return server->udp_questions == 2; });
  const auto child_finds_it = [&] {
    server.reset();
    if (loop_.after_fork()) return false;
    while (results_ == 0) loop_.run(Run::once);
    return addresses_ == Texts{"192.0.2.7:80"};
  };
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    ::_exit(child_finds_it() ? 0 : 1);
  }
  run_until(loop_, [&] { return results_ == 1; });
  int status = -1;
  while (::waitpid(pid, &status, WNOHANG) != pid) loop_.run_for(1ms);  // The child has an alarm.
  EXPECT_EQ(status, 0);
  EXPECT_EQ(addresses_, Texts{"192.0.2.7:80"});
  EXPECT_EQ(server->udp_questions, 4);
}

TEST_F(ResolvingTest, ReloadsChangedConfiguration) {
  OwnFile file("resolv_conf", "search one.test\n");
  ResolverOptions options = with_servers({server_.address()});
  options.resolv_conf = file.path();
  ASSERT_FALSE(configure_resolver(loop_, options));
  server_.names["db.one.test"] = {.ipv4 = {"192.0.2.1"}};
  server_.names["db.other.test"] = {.ipv4 = {"192.0.2.2"}};
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"});

  file.write("search other.test\n# changed\n");
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.2:80"});
}

// For the root domain c-ares makes a name with two dots, and stops there.
TEST_F(ResolvingTest, FindsSingleLabelNamesInRootDomain) {
  server_.names["db"] = {.ipv4 = {"192.0.2.1"}};
  server_.names["web.one.test"] = {.ipv4 = {"192.0.2.2"}};
  for (const char* text : {"search .\n", "search . one.test\n", "search one.test .\n"}) {
    OwnFile file("resolv_conf", text);
    ResolverOptions options = with_servers({server_.address()});
    options.resolv_conf = file.path();
    ASSERT_FALSE(configure_resolver(loop_, options));
    EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"}) << text;
    if (std::string_view(text).contains("one"))
      EXPECT_EQ(addresses_of("web"), Texts{"192.0.2.2:80"}) << text;
  }
}

TEST_F(ResolvingTest, RejectsInvalidConfigurations) {
  for (const ResolverOptions& options :
       {ResolverOptions{.timeout = -1ms}, ResolverOptions{.timeout = 3min},
        ResolverOptions{.tries = -1}, ResolverOptions{.tries = 11}}) {
    EXPECT_EQ(configure_resolver(loop_, options), std::errc::invalid_argument);
  }
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
}

TEST_F(ResolvingTest, RejectsInvalidServersAndChangesDuringQueries) {
  EXPECT_EQ(configure_resolver(loop_, with_servers({*Address::path("/tmp/s")})),
            std::errc::invalid_argument);
  EXPECT_EQ(configure_resolver(loop_, with_servers({Address()})), std::errc::invalid_argument);
  {
    const Resolving resolving = ask("slow.test");
    EXPECT_EQ(configure_resolver(loop_, with_servers({server_.address()})),
              std::errc::device_or_resource_busy);
  }
  EXPECT_FALSE(configure_resolver(loop_, with_servers({server_.address()})));
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

// ---- the system refuses

TEST_F(ResolvingTest, ReportsMissingSocketAndRecovers) {
  for (const int error : {EMFILE, ENFILE, ENOMEM}) {
    FaultPlan plan;
    plan.fail_share(SystemCall::socket, 1, error, 1);
    {
      const FaultScope scope(plan);
      EXPECT_EQ(error_of("both.test"), std::error_code(error, std::system_category()));
    }
    EXPECT_EQ(addresses_of("both.test").size(), 3u);
  }
}

// From here on this process cannot open descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(free);
    limit(static_cast<rlim_t>(free));
  }
  ~NoDescriptors() { limit(before_.rlim_cur); }

 private:
  void limit(rlim_t max) const {
    const rlimit limits{.rlim_cur = max, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limits);
  }
  rlimit before_{};
};

// If it took the file for an empty one, it would query a server on this machine without end.
TEST_F(ResolvingTest, ReportsMissingDescriptorForConfiguration) {
  OwnFile file("resolv_conf", "search one.test\n");
  ResolverOptions options = with_servers({server_.address()});
  options.resolv_conf = file.path();
  server_.names["db.one.test"] = {.ipv4 = {"192.0.2.1"}};
  {
    const NoDescriptors none;
    EXPECT_EQ(configure_resolver(loop_, options), std::errc::too_many_files_open);
    EXPECT_EQ(error_of("db"), std::errc::too_many_files_open);
  }
  ASSERT_FALSE(configure_resolver(loop_, options));
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"});
  file.write("search other.test one.test\n");
  {
    const NoDescriptors none;
    EXPECT_EQ(error_of("db"), std::errc::too_many_files_open);
  }
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"});
  EXPECT_EQ(server_.udp_questions, 6);
}

// select() supports no higher ones.
TEST_F(ResolvingTest, UsesDescriptorsAboveFdSetsize) {
  rlimit limits{};
  ::getrlimit(RLIMIT_NOFILE, &limits);
  if (limits.rlim_max < 2000) GTEST_SKIP() << too_few_descriptors(2000);
  limits.rlim_cur = std::max<rlim_t>(limits.rlim_cur, 2000);
  ::setrlimit(RLIMIT_NOFILE, &limits);
  std::list<sys::Descriptor> filling;
  do {
    filling.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (filling.back().get() < 1100);
  server_.names["long.test"] = {.ipv4 = {"192.0.2.1"}, .is_long = true};
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
  EXPECT_EQ(addresses_of("long.test"), Texts{"192.0.2.1:80"});
}

TEST_F(ResolvingTest, SurvivesSystemCallFailures) {
  struct {
    SystemCall call;
    int error;
  } const faults[] = {{SystemCall::connect, ENETUNREACH},  {SystemCall::connect, EINTR},
                      {SystemCall::send, EAGAIN},          {SystemCall::send, ENOBUFS},
                      {SystemCall::send, EPERM},           {SystemCall::receive, EAGAIN},
                      {SystemCall::receive, ECONNREFUSED}, {SystemCall::receive, ENOMEM}};
  for (const auto& fault : faults) {
    ASSERT_FALSE(configure_resolver(loop_, impatient({server_.address()}, 2)));
    for (const double share : {0.3, 1.0}) {
      FaultPlan plan;
      plan.fail_share(fault.call, share, fault.error, 3);
      const FaultScope scope(plan);
      const int before = results_;
      {
        const Resolving one = ask("both.test");
        const Resolving two = ask("nobody.test");
        run_until(loop_, [&] { return results_ == before + 2; });
      }
      turn();
      EXPECT_EQ(results_, before + 2);
      if (share == 1) {
        EXPECT_TRUE(error_);
      }
    }
    ASSERT_FALSE(configure_resolver(loop_, with_servers({server_.address()})));
    EXPECT_EQ(addresses_of("both.test").size(), 3u);
  }
}

TEST_F(ResolvingTest, IgnoresUnreadableHostsFile) {
  FaultPlan plan;
  plan.fail_share(SystemCall::open, 1, EACCES, 1);
  const FaultScope scope(plan);
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
  EXPECT_GT(plan.failures(SystemCall::open), 0u);
}

}  // namespace
}  // namespace spate::testing
