#include "net/dns/hosts_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/random.h"

namespace spate {
namespace {

using Texts = std::vector<std::string>;

Texts found(std::string_view text, std::string_view name) {
  Texts texts;
  for (const Address& address : addresses_in_hosts(text, name, 7))
    texts.push_back(address.to_string());
  return texts;
}

TEST(HostsFile, FindsEveryAddressOfName) {
  const std::string_view text =
      "127.0.0.1 localhost\n"
      "192.0.2.1\tdb.test db  # the master\n"
      "2001:db8::1 db\r\n"
      "192.0.2.1 db\n"
      "  192.0.2.2 other db";
  EXPECT_EQ(found(text, "db"), (Texts{"192.0.2.1:7", "[2001:db8::1]:7", "192.0.2.2:7"}));
  EXPECT_EQ(found(text, "db.test"), Texts{"192.0.2.1:7"});
  EXPECT_EQ(found(text, "master"), Texts());
  EXPECT_EQ(found(text, "192.0.2.1"), Texts());
}

TEST(HostsFile, IgnoresCaseAndTrailingDotInNames) {
  EXPECT_EQ(found("192.0.2.1 Db.Test.\n", "dB.tEST"), Texts{"192.0.2.1:7"});
  EXPECT_EQ(found("192.0.2.1 db.test\n", "db.test."), Texts{"192.0.2.1:7"});
  EXPECT_TRUE(is_same_host("A.b", "a.B."));
  EXPECT_FALSE(is_same_host("a", "ab"));
}

TEST(HostsFile, SkipsLinesWithoutEntry) {
  for (const std::string_view text :
       {"", "\n\n", "#192.0.2.1 db\n", "db\n", "192.0.2 db\n", "192.0.2.1\n",
        "fe80::1%nowhere db\n", "192.0.2.1 # db\n", "\0 db\n", "   "}) {
    EXPECT_EQ(found(text, "db"), Texts()) << text;
  }
}

TEST(HostsFile, ParsesAnyBytes) {
  testing::Random random(3);
  const std::string_view letters = " \t\n\r#.:%db127\0";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::size_t length = random.below(40); length > 0; --length)
      text += letters[random.below(letters.size())];
    for (const std::string& address : found(text, "db")) EXPECT_TRUE(address.ends_with(":7"));
  }
}

}  // namespace
}  // namespace spate
