#include "net/dns/resolv_conf.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/random.h"

namespace spate {
namespace {

using namespace std::chrono_literals;

TEST(ResolvConf, ParsesTimeoutAndAttempts) {
  EXPECT_EQ(parse_resolv_conf("nameserver 192.0.2.1\noptions timeout:2 rotate attempts:3\n"),
            (ResolvConf{.timeout = 2s, .tries = 3}));
  EXPECT_EQ(parse_resolv_conf("options\tattempts:1\r\noptions timeout:7"),
            (ResolvConf{.timeout = 7s, .tries = 1}));
  EXPECT_EQ(parse_resolv_conf("options timeout:2\noptions timeout:3"), ResolvConf{.timeout = 3s});
}

TEST(ResolvConf, AppliesLimitsOfSystem) {
  EXPECT_EQ(parse_resolv_conf("options timeout:31 attempts:6"),
            (ResolvConf{.timeout = 30s, .tries = 5}));
  EXPECT_EQ(parse_resolv_conf("options timeout:99999999999999999999"), ResolvConf{.timeout = 30s});
}

TEST(ResolvConf, SkipsMeaninglessLines) {
  for (const std::string_view text :
       {"", "\n", "# options timeout:2", "; options timeout:2", "search timeout:2", "options",
        "options timeout", "options timeout:", "options timeout:0", "options timeout:-1",
        "options timeout:2x", "options xtimeout:2", "options # timeout 2", "optionstimeout:2"}) {
    EXPECT_EQ(parse_resolv_conf(text), ResolvConf()) << text;
  }
}

TEST(ResolvConf, ParsesAnyBytes) {
  testing::Random random(9);
  const std::string words[] = {"options", "timeout:", "attempts:", "3", "-", " ", "\t", "\n", "#"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::size_t count = random.below(12); count > 0; --count)
      text += words[random.below(std::size(words))];
    const ResolvConf conf = parse_resolv_conf(text);
    EXPECT_TRUE(conf.timeout >= 0s && conf.timeout <= 30s && conf.tries >= 0 && conf.tries <= 5);
  }
}

}  // namespace
}  // namespace spate
