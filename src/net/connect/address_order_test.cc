#include "net/connect/address_order.h"

#include <gtest/gtest.h>

#include <string>

namespace spate {
namespace {

// "6a" is an IPv6 address, "4a" an IPv4 one.
std::string ordered(const std::vector<std::string>& given, bool ipv6_first) {
  std::vector<Address> addresses;
  for (const std::string& one : given)
    addresses.push_back(*Address::ip(one[0] == '6' ? "::" + one : "192.0.2." + one.substr(1), 1));
  std::string text;
  for (const Address& one : by_turns(addresses, ipv6_first)) {
    const std::string host = one.host();
    text += is_ipv6(one) ? host.substr(2) : "4" + host.substr(8);
    text += ' ';
  }
  return text;
}

TEST(AddressOrder, AlternatesBetweenFamilies) {
  EXPECT_EQ(ordered({"61", "62", "63", "41", "42"}, true), "61 41 62 42 63 ");
  EXPECT_EQ(ordered({"61", "62", "63", "41", "42"}, false), "41 61 42 62 63 ");
  EXPECT_EQ(ordered({"41", "61", "42", "43", "44"}, true), "61 41 42 43 44 ");
}

TEST(AddressOrder, KeepsOrderOfSingleFamily) {
  EXPECT_EQ(ordered({"62", "61", "63"}, false), "62 61 63 ");
  EXPECT_EQ(ordered({"42", "41"}, true), "42 41 ");
  EXPECT_EQ(ordered({}, true), "");
}

}  // namespace
}  // namespace spate
