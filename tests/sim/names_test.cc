// Names of hosts in a World.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/net/resolver.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

class SimNames : public ::testing::Test {
 protected:
  std::vector<Address> look_up(std::string_view name) {
    std::optional<Result<std::vector<Address>>> found;
    Resolving resolving = there_.run([&](Loop& loop) {
      return resolve(loop, name, 7, [&](auto result) { found = std::move(result); });
    });
    EXPECT_EQ(world_.run_until([&] { return found.has_value(); }, 1h), Outcome::done);
    return found.value_or(std::vector<Address>()).value_or(std::vector<Address>());
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
};

TEST_F(SimNames, AreResolved) {
  world_.name("db", here_);
  world_.name("db.example", here_);
  const std::vector<Address> both = {here_.address(7), here_.address_ipv6(7)};
  EXPECT_EQ(look_up("db"), both);
  EXPECT_EQ(look_up("DB.example"), both);
}

TEST_F(SimNames, MayHaveSeveralHosts) {
  world_.name("db", here_);
  world_.name("db", there_);
  EXPECT_EQ(look_up("db").size(), 4u);
}

TEST_F(SimNames, MayBeConnectedTo) {
  world_.name("db", here_);
  auto server =
      here_.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv4(7000))); });
  std::optional<Result<Stream>> connected;
  Connecting connecting = there_.run([&](Loop& loop) {
    return connect(loop, "db", 7000, [&](Result<Stream> stream) { connected = std::move(stream); });
  });
  EXPECT_EQ(world_.run_until([&] { return connected.has_value(); }, 1min), Outcome::done);
  ASSERT_TRUE(*connected) << connected->error().message();
  EXPECT_EQ((*connected)->peer_address(), here_.address(7000));
  EXPECT_LT(world_.now(), 1s);
}

// ---- name servers

class SimNameServers : public SimNames {
 protected:
  std::error_code error_of(std::string_view name, const ResolveOptions& options = {}) {
    std::optional<Result<std::vector<Address>>> found;
    const Nanos before = world_.now();
    Resolving resolving = there_.run([&](Loop& loop) {
      return resolve(loop, name, 7, [&](auto result) { found = std::move(result); }, options);
    });
    EXPECT_EQ(world_.run_until([&] { return found.has_value(); }, 1h), Outcome::done);
    took_ = std::chrono::round<std::chrono::milliseconds>(world_.now() - before);
    return found->has_value() ? std::error_code() : found->error();
  }
  Nanos took_{0};
};

TEST_F(SimNameServers, ReturnAddressesOfBothFamilies) {
  const std::vector<Address> both = {here_.address(7), there_.address(7), here_.address_ipv6(7)};
  world_.answer_name("db.example", {.addresses = both, .delay = 20ms});
  EXPECT_EQ(look_up("DB.example."), both);
  EXPECT_EQ(std::chrono::round<std::chrono::milliseconds>(world_.now()), 20ms);
  EXPECT_FALSE(error_of("db.example", {.ipv6 = false}));
}

TEST_F(SimNameServers, ReportUnknownNames) {
  EXPECT_EQ(error_of("nobody.example"), NameError::no_such_host);
  EXPECT_EQ(took_, 1ms);
  world_.answer_name("six.example", {.addresses = {here_.address_ipv6(0)}});
  EXPECT_EQ(error_of("six.example", {.ipv6 = false}), NameError::no_address);
}

TEST_F(SimNameServers, MayFailOrTimeOut) {
  world_.answer_name("db.example", {.error = NameError::server_failure, .delay = 1s});
  EXPECT_EQ(error_of("db.example"), NameError::server_failure);
  EXPECT_EQ(took_, 1s);
  world_.answer_name("db.example", {.error = NameError::timeout});
  EXPECT_EQ(error_of("db.example"), NameError::timeout);
  EXPECT_GE(took_, 75s);
  EXPECT_EQ(error_of("db.example", {.timeout = 3s}), NameError::timeout);
  EXPECT_GE(took_, 3s);
  EXPECT_LT(took_, 4s);
}

TEST_F(SimNameServers, LateResponseIsTimeout) {
  world_.answer_name("db.example", {.addresses = {here_.address(0)}, .delay = 1h});
  EXPECT_EQ(error_of("db.example"), NameError::timeout);
  EXPECT_GE(took_, 75s);
  EXPECT_LT(took_, 80s);
}

// The resolver reads the timeout of the system's configuration to know how long it may sleep.
TEST_F(SimNameServers, TimeoutIsLongestSleepOfResolver) {
  const auto turns = [&] { return there_.run([](Loop& loop) { return loop.metrics().turns; }); };
  world_.answer_name("db.example", {.error = NameError::timeout});
  const std::uint64_t before = turns();
  EXPECT_EQ(error_of("db.example"), NameError::timeout);
  EXPECT_GE(took_, 75s);
  EXPECT_LT(turns() - before, 100u);
}

TEST_F(SimNameServers, MayChangeTheirResponses) {
  world_.at(10s, [&] { world_.answer_name("db.example", {.addresses = {here_.address(0)}}); });
  EXPECT_EQ(error_of("db.example"), NameError::no_such_host);
  world_.run_for(10s);
  EXPECT_FALSE(error_of("db.example"));
}

TEST_F(SimNameServers, HostsFilesTakePrecedence) {
  world_.name("db.example", there_);
  world_.answer_name("db.example", {.addresses = {here_.address(0)}});
  EXPECT_EQ(look_up("db.example").front(), there_.address(7));
}

TEST_F(SimNameServers, ShortageOfDescriptorsIsReported) {
  static_cast<void>(look_up("one"));  // The resolver is there.
  there_.limit_descriptors(there_.open_descriptors());
  EXPECT_EQ(error_of("two.example"), std::errc::too_many_files_open);
}

TEST_F(SimNameServers, AbandonedLookupLeaksNoDescriptors) {
  const std::size_t before = there_.open_descriptors();
  world_.answer_name("db.example", {.error = NameError::timeout});
  Resolving resolving =
      there_.run([&](Loop& loop) { return resolve(loop, "db.example", 7, [](auto) { FAIL(); }); });
  world_.run_for(1s);
  EXPECT_EQ(there_.open_descriptors(), before + 1);
  there_.run([&](Loop&) { resolving.cancel(); });
  world_.run_for(10min);
  EXPECT_EQ(there_.open_descriptors(), before);
}

TEST_F(SimNameServers, ConnectUsesFirstReachableAddress) {
  auto server =
      here_.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv4(7000))); });
  world_.answer_name(
      "db.example",
      {.addresses = {there_.address(0), here_.address(0)}, .delay = 10ms, .jitter = 10ms});
  std::optional<Result<Stream>> connected;
  Connecting connecting = there_.run([&](Loop& loop) {
    return connect(loop, "db.example", 7000,
                   [&](Result<Stream> stream) { connected = std::move(stream); });
  });
  EXPECT_EQ(world_.run_until([&] { return connected.has_value(); }, 1min), Outcome::done);
  ASSERT_TRUE(*connected) << connected->error().message();
  EXPECT_EQ((*connected)->peer_address(), here_.address(7000));
}

}  // namespace
}  // namespace spate::testing
