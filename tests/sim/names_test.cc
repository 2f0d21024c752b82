// Names of hosts in a World.
#include <gtest/gtest.h>

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

TEST_F(SimNames, AreLookedUp) {
  world_.name("db", here_);
  world_.name("db.example", here_);
  const std::vector<Address> both = {here_.address(7), here_.address_ipv6(7)};
  EXPECT_EQ(look_up("db"), both);
  EXPECT_EQ(look_up("DB.example"), both);
}

TEST_F(SimNames, MayBeOfSeveralHosts) {
  world_.name("db", here_);
  world_.name("db", there_);
  EXPECT_EQ(look_up("db").size(), 4u);
}

TEST_F(SimNames, AreConnectedTo) {
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

}  // namespace
}  // namespace spate::testing
