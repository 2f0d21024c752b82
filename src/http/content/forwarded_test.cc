#include "http/content/forwarded.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spate::http {
namespace {

const std::vector<Network> kTrusted{must(Network::parse("10.0.0.0/8")),
                                    must(Network::parse("2001:db8:1::/48"))};
const Address kProxy = must(Address::ip("10.0.0.1", 4321));

// Returns the client behind kProxy, which sent these lines of a field.
std::string client_of(std::string_view name, const std::vector<std::string>& lines) {
  Fields fields;
  for (const std::string& line : lines) EXPECT_TRUE(fields.add(name, line)) << line;
  return client_behind(fields, name, kProxy, kTrusted).to_string();
}
std::string x_forwarded_for(const std::string& line) {
  return client_of("X-Forwarded-For", {line});
}
std::string forwarded(const std::string& line) { return client_of("Forwarded", {line}); }

constexpr std::string_view kNone = "10.0.0.1:4321";

TEST(ClientBehind, IsFirstUntrustedAddressFromRight) {
  EXPECT_EQ(x_forwarded_for("192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(x_forwarded_for("192.0.2.1, 192.0.2.2"), "192.0.2.2:0");
  EXPECT_EQ(x_forwarded_for("192.0.2.1, 192.0.2.2,10.1.1.1 , 10.2.2.2"), "192.0.2.2:0");
  EXPECT_EQ(x_forwarded_for("192.0.2.1,\t2001:db8:1::7"), "192.0.2.1:0");
  EXPECT_EQ(forwarded("for=192.0.2.1, for=192.0.2.2;by=10.0.0.1, For=10.1.1.1"), "192.0.2.2:0");
}

TEST(ClientBehind, IsLeftmostAddressIfAllAreTrusted) {
  EXPECT_EQ(x_forwarded_for("10.3.3.3, 10.2.2.2"), "10.3.3.3:0");
  EXPECT_EQ(forwarded("for=10.3.3.3;proto=http, for=10.2.2.2"), "10.3.3.3:0");
}

TEST(ClientBehind, IsProxyWithoutField) {
  EXPECT_EQ(client_of("X-Forwarded-For", {}), kNone);
  EXPECT_EQ(x_forwarded_for(""), kNone);
  EXPECT_EQ(x_forwarded_for(" , ,, "), kNone);
  Fields other;
  ASSERT_TRUE(other.add("X-Forwarded-For", "192.0.2.1"));
  EXPECT_EQ(client_behind(other, "Forwarded", kProxy, kTrusted), kProxy);
}

TEST(ClientBehind, IsLastKnownAddressAtElementWithoutOne) {
  for (const std::string hidden : {"unknown", "_hidden", "_", "example.org", "192.0.2.1.2",
                                   "192.0.2.01", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:x",
                                   "[2001:db8::1", "2001:db8::1]", "[2001:db8::1]80", "[]", ":80",
                                   "[192.0.2.1]", "fe80::1%eth0", "\"192.0.2.1\"", "for=192.0.2.1",
                                   "192.0.2.1 192.0.2.2", "2001:db8::1:2:3:4:5:6:7:8"}) {
    EXPECT_EQ(x_forwarded_for("192.0.2.9, " + hidden), kNone) << hidden;
    EXPECT_EQ(x_forwarded_for(hidden + ", 192.0.2.9"), "192.0.2.9:0") << hidden;
    EXPECT_EQ(x_forwarded_for(hidden + ", 10.2.2.2"), "10.2.2.2:0") << hidden;
  }
  EXPECT_EQ(x_forwarded_for(std::string(100, '1')), kNone);
}

TEST(ClientBehind, IsLastKnownAddressAtMalformedForwardedElement) {
  for (const std::string bad :
       {"for=unknown", "for=_hidden", "for=\"_hidden\"", "for=", "for", "=", ";", "proto=https",
        "for=192.0.2.1;for=192.0.2.2", "for=192.0.2.1;proto", "for=192.0.2.1;=x", "192.0.2.1",
        "for=192.0.2.1:80", "for=[2001:db8::1]", "for=\"2001:db8::1", "for=\"192.0.2.1\"x",
        "for= 192.0.2.1", "for =192.0.2.1", "for=\"192.0.2.1;proto=http"}) {
    EXPECT_EQ(forwarded("for=192.0.2.9, " + bad), kNone) << bad;
    EXPECT_EQ(forwarded(bad + ", for=192.0.2.9"), "192.0.2.9:0") << bad;
  }
}

TEST(ClientBehind, HasPortOfItsElement) {
  EXPECT_EQ(x_forwarded_for("192.0.2.1:80"), "192.0.2.1:80");
  EXPECT_EQ(x_forwarded_for("[2001:db8::1]:80"), "[2001:db8::1]:80");
  EXPECT_EQ(x_forwarded_for("[2001:db8::1]"), "[2001:db8::1]:0");
  EXPECT_EQ(x_forwarded_for("2001:db8::1"), "[2001:db8::1]:0");
  EXPECT_EQ(forwarded("for=\"192.0.2.1:80\""), "192.0.2.1:80");
  EXPECT_EQ(forwarded("for=\"192.0.2.1:_hidden\""), "192.0.2.1:0");
  EXPECT_EQ(forwarded("FOR=\"[2001:db8::1]:4711\""), "[2001:db8::1]:4711");
  EXPECT_EQ(forwarded("for=\"[2001:db8::1]\";proto=https"), "[2001:db8::1]:0");
  EXPECT_EQ(forwarded("for=\"\\192.0.2.\\1\""), "192.0.2.1:0");
}

TEST(ClientBehind, ReadsMappedAddressesAsIpv4) {
  EXPECT_EQ(x_forwarded_for("192.0.2.1, ::ffff:10.1.1.1"), "192.0.2.1:0");
  EXPECT_EQ(x_forwarded_for("::ffff:192.0.2.1"), "192.0.2.1:0");
}

TEST(ClientBehind, DependsOnNothingLeftOfClient) {
  for (const std::string left :
       {"for=\"", "\"", "for=\"x", "\\\"", "\\", "for=\"a\\\"", "a;b=\"\"\""})
    for (const std::string own : {"for=192.0.2.9", "for=192.0.2.9;host=\"a,b;c\\\"\"",
                                  "for=\"192.0.2.9\";by=\"[2001:db8::1]\""})
      EXPECT_EQ(forwarded(left + ", " + own), "192.0.2.9:0") << left << own;
}

TEST(ClientBehind, ReadsLastLineFirst) {
  EXPECT_EQ(client_of("X-Forwarded-For", {"192.0.2.1", "192.0.2.2"}), "192.0.2.2:0");
  EXPECT_EQ(client_of("X-Forwarded-For", {"192.0.2.1, 192.0.2.2", "", "10.1.1.1"}), "192.0.2.2:0");
  EXPECT_EQ(client_of("Forwarded", {"for=192.0.2.1", "for=192.0.2.2;by=x, for=10.1.1.1"}),
            "192.0.2.2:0");
  EXPECT_EQ(client_of("CF-Connecting-IP", {"192.0.2.1"}), "192.0.2.1:0");
}

TEST(ClientBehind, ReadsAtMost32Elements) {
  std::string line = "192.0.2.1";
  std::vector<std::string> lines{line};
  for (std::size_t i = 1; i < kMostHops; ++i) {
    line += ", 10.1.1." + std::to_string(i);
    lines.push_back("10.1.1." + std::to_string(i));
  }
  EXPECT_EQ(x_forwarded_for(line), "192.0.2.1:0");
  EXPECT_EQ(client_of("X-Forwarded-For", lines), "192.0.2.1:0");
  EXPECT_EQ(x_forwarded_for(line + ", 10.2.2.2"), "10.1.1.1:0");
  lines.push_back("10.2.2.2");
  EXPECT_EQ(client_of("X-Forwarded-For", lines), "10.1.1.1:0");
}

}  // namespace
}  // namespace spate::http
