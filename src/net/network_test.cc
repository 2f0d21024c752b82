// Tests of Network: texts, the addresses that it contains, and texts that are refused.
#include "spate/net/network.h"

#include <gtest/gtest.h>

#include <string>

namespace spate {
namespace {

Network network(std::string_view text) { return must(Network::parse(text)); }
Address host(std::string_view text) { return must(Address::ip(text, 80)); }

TEST(Network, ContainsAddressesOfItsPrefix) {
  EXPECT_TRUE(network("10.0.0.0/8").contains(host("10.255.0.1")));
  EXPECT_FALSE(network("10.0.0.0/8").contains(host("11.0.0.1")));
  EXPECT_TRUE(network("192.0.2.128/25").contains(host("192.0.2.255")));
  EXPECT_FALSE(network("192.0.2.128/25").contains(host("192.0.2.127")));
  EXPECT_TRUE(network("2001:db8::/33").contains(host("2001:db8:7fff::1")));
  EXPECT_FALSE(network("2001:db8::/33").contains(host("2001:db8:8000::1")));
  EXPECT_TRUE(network("192.0.2.1").contains(host("192.0.2.1")));
  EXPECT_FALSE(network("192.0.2.1").contains(host("192.0.2.0")));
  EXPECT_TRUE(network("fe80::/10").contains(must(Address::ip("fe80::1", 0))));
}

TEST(Network, ContainsOneFamilyIfPrefixIsZero) {
  EXPECT_TRUE(network("0.0.0.0/0").contains(host("255.1.2.3")));
  EXPECT_FALSE(network("0.0.0.0/0").contains(host("2001:db8::1")));
  EXPECT_TRUE(network("::/0").contains(host("2001:db8::1")));
  EXPECT_FALSE(network("::/0").contains(host("192.0.2.1")));
}

TEST(Network, TreatsMappedAddressesAsIpv4) {
  EXPECT_TRUE(network("10.0.0.0/8").contains(host("::ffff:10.1.2.3")));
  EXPECT_FALSE(network("::/0").contains(host("::ffff:10.1.2.3")));
  EXPECT_EQ(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
  EXPECT_EQ(network("::ffff:10.0.0.1"), network("10.0.0.1/32"));
  EXPECT_FALSE(network("::ffff:0:0/95").contains(host("10.0.0.1")));
}

TEST(Network, ContainsUnixSockets) {
  const Network local = network("unix:");
  EXPECT_TRUE(local.contains(Address()));
  EXPECT_TRUE(local.contains(must(Address::path("/run/s.sock"))));
  EXPECT_FALSE(local.contains(host("127.0.0.1")));
  EXPECT_FALSE(network("0.0.0.0/0").contains(Address()));
  EXPECT_EQ(Network(must(Address::path("/run/s.sock"))), local);
}

TEST(Network, IsEmptyByDefault) {
  for (const Network& empty : {Network(), Network(Address())}) {
    EXPECT_FALSE(empty.contains(host("0.0.0.0")));
    EXPECT_FALSE(empty.contains(Address()));
    EXPECT_EQ(empty.to_string(), "");
  }
}

TEST(Network, IgnoresPortOfAddress) {
  const Network one = must(Address::parse("192.0.2.1:9"));
  EXPECT_EQ(one, network("192.0.2.1/32"));
  EXPECT_TRUE(one.contains(host("192.0.2.1")));
}

TEST(Network, PrintsTextThatItParses) {
  EXPECT_EQ(network("10.1.2.3/8").to_string(), "10.0.0.0/8");
  EXPECT_EQ(network("2001:db8:ffff::/33").to_string(), "2001:db8:8000::/33");
  EXPECT_EQ(network("192.0.2.1").to_string(), "192.0.2.1/32");
  EXPECT_EQ(network("::/0").to_string(), "::/0");
  EXPECT_EQ(network("unix:").to_string(), "unix:");
}

TEST(Network, RefusesInvalidTexts) {
  for (const std::string_view text :
       {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8 ",
        "10.0.0.0/0008", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0", "10.0.0/8", "::/129", "[::1]/128",
        "fe80::1%1/64", "example.org", "10.0.0.1:80", "unix", "unix:/run/s.sock", "::1/999"})
    EXPECT_FALSE(Network::parse(text)) << text;
}

}  // namespace
}  // namespace spate
