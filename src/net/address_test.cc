// Tests of Address: conversion from and to text, and texts that are not addresses.
#include "spate/net/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spate {
namespace {

using Family = Address::Family;

constexpr std::size_t kPathSize = sizeof(sockaddr_un::sun_path);

std::error_code error_of(std::string_view text) {
  const Result<Address> parsed = Address::parse(text);
  return parsed ? std::error_code() : parsed.error();
}

TEST(Address, IsNoneByDefault) {
  const Address none;
  EXPECT_EQ(none.family(), Family::none);
  EXPECT_FALSE(none.is_ip());
  EXPECT_EQ(none.port(), 0);
  EXPECT_EQ(none.host(), "");
  EXPECT_EQ(none.name(), "");
  EXPECT_EQ(none.to_string(), "none");
  EXPECT_EQ(none, none.with_port(80));
  EXPECT_EQ(none, none.unmapped());
  EXPECT_NE(none, Address::any_ipv4(0));
}

TEST(Address, PrintsParsedText) {
  for (const std::string text : {
           "192.0.2.1:80",
           "0.0.0.0:0",
           "255.255.255.255:65535",
           "[::]:1",
           "[::1]:80",
           "[2001:db8::1]:65535",
           "[2001:db8:0:1:1:1:1:1]:8",
           "[::ffff:192.0.2.1]:80",
           "[fe80::1%lo]:80",
           "[fe80::1%4294967295]:80",
           "unix:/run/s.sock",
           "unix:s.sock",
           "unix:@name",
           "unix:@",
           "unix:@@name",
           "unix:./@name",
           "unix:path:x",
           "path:@name",
           "path:@",
       }) {
    const Result<Address> parsed = Address::parse(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message();
    EXPECT_EQ(parsed->to_string(), text);
    EXPECT_EQ(*Address::parse(parsed->to_string()), *parsed);
    EXPECT_EQ(*Address::from_system(parsed->data(), parsed->size()), *parsed);
  }
}

TEST(Address, ParsesEquivalentFormsToEqualValues) {
  EXPECT_EQ(Address::parse("[2001:DB8:0:0::0:1]:080")->to_string(), "[2001:db8::1]:80");
  EXPECT_EQ(Address::parse("[::ffff:c000:201]:80"), Address::parse("[::ffff:192.0.2.1]:80"));
  EXPECT_EQ(Address::parse("[fe80::1%1]:80"), Address::parse("[fe80::1%lo]:80"));
  EXPECT_EQ(Address::parse("/run/s.sock"), Address::parse("unix:/run/s.sock"));
  EXPECT_EQ(Address::parse("path:/run/s.sock"), Address::parse("unix:/run/s.sock"));
  EXPECT_EQ(Address::parse("192.0.2.1:00080")->port(), 80);
}

TEST(Address, RefusesMalformedAddresses) {
  for (const char* text : {
           "",
           ":",
           ":80",
           "80",
           "192.0.2.1",
           "192.0.2.1:",
           "192.0.2.1: 80",
           "192.0.2.1:+80",
           "192.0.2.1:-1",
           "192.0.2.1:0x50",
           "192.0.2.1:80 ",
           " 192.0.2.1:80",
           "192.0.2:80",
           "192.0.2.256:80",
           "192.0.2.01:80",
           "192.0.2.1.1:80",
           "1:80",
           "192.0.2.1:80:80",
           "[192.0.2.1]:80",
           "::1:80",
           "[::1]",
           "[::1]80",
           "[::1:80",
           "::1]:80",
           "[]:80",
           "[:]:80",
           "[::1]]:80",
           "[[::1]]:80",
           "[1::2::3]:80",
           "[::12345]:80",
           "[::1%]:80",
           "192.0.2.1%lo:80",
           "localhost:80",
           "example.org:80",
           "unix:",
           "unix",
           "path:",
           "path",
           "none",
           "@name",
           "[::ffff:1.2.3]:1",
       }) {
    EXPECT_EQ(error_of(text), std::errc::invalid_argument) << text;
  }
  EXPECT_EQ(error_of(std::string("192.0.2.1\0:80", 13)), std::errc::invalid_argument);
  EXPECT_EQ(error_of(std::string("unix:/a\0b", 9)), std::errc::invalid_argument);
  EXPECT_EQ(error_of(std::string(1000, '1') + ":80"), std::errc::invalid_argument);
}

TEST(Address, ParsesPortAloneForListening) {
  EXPECT_EQ(Address::parse_listen("7000"), Address::any_ipv6(7000));
  EXPECT_EQ(Address::parse_listen(":7000"), Address::any_ipv6(7000));
  EXPECT_EQ(Address::parse_listen("0"), Address::any_ipv6(0));
  for (const char* text : {"127.0.0.1:7000", "[::1]:7000", "/run/s.sock", "unix:@name"})
    EXPECT_EQ(Address::parse_listen(text), Address::parse(text)) << text;
  for (const char* text : {"", ":", "::7000", "::", "+7000", " 7000", "70x0", ":70x0", "localhost",
                           "localhost:7000", "none"})
    EXPECT_EQ(Address::parse_listen(text).error(), std::errc::invalid_argument) << text;
  EXPECT_EQ(Address::parse_listen("65536").error(), std::errc::result_out_of_range);
  EXPECT_EQ(Address::parse_listen(":65536").error(), std::errc::result_out_of_range);
}

TEST(Address, RefusesPortsAbove65535) {
  EXPECT_EQ(error_of("192.0.2.1:65536"), std::errc::result_out_of_range);
  EXPECT_EQ(error_of("[::1]:99999999999999999999"), std::errc::result_out_of_range);
}

TEST(Address, RefusesUnknownScopes) {
  for (const char* text : {"[fe80::1%nosuch]:80", "[fe80::1%0]:80", "[fe80::1%-1]:80",
                           "[fe80::1%4294967296]:80", "[fe80::1%1x]:80", "[fe80::1%lo%lo]:80"})
    EXPECT_EQ(error_of(text), std::errc::no_such_device) << text;
  EXPECT_EQ(Address::ip("fe80::1%nosuch", 1).error(), std::errc::no_such_device);
}

TEST(Address, ReportsItsScope) {
  EXPECT_EQ(Address::ip("fe80::1%lo", 1)->scope(), 1u);
  EXPECT_EQ(Address::ip("fe80::1", 1)->scope(), 0u);
  EXPECT_EQ(Address::ip("192.0.2.1", 1)->scope(), 0u);
  EXPECT_NE(Address::ip("fe80::1%lo", 1), Address::ip("fe80::1", 1));
  EXPECT_EQ(Address::ip("fe80::1%lo", 1)->host(), "fe80::1%lo");
}

TEST(Address, HoldsPathsUpToKernelsLength) {
  const std::string longest(kPathSize - 1, 'p');
  EXPECT_EQ(Address::path(longest)->name(), longest);
  EXPECT_EQ(Address::path(longest)->size(), offsetof(sockaddr_un, sun_path) + kPathSize);
  EXPECT_EQ(Address::path(longest + 'p').error(), std::errc::filename_too_long);
  EXPECT_EQ(error_of('/' + longest), std::errc::filename_too_long);
  EXPECT_EQ(Address::path("").error(), std::errc::invalid_argument);
  EXPECT_FALSE(Address::path("x")->is_abstract());
  EXPECT_EQ(Address::path("x")->family(), Family::local);
}

// A path may begin with '@', which marks the abstract namespace.
TEST(Address, PrintsPathUnlikeAbstractName) {
  const Address address = *Address::path("@name");
  EXPECT_EQ(*Address::parse(address.to_string()), address);
  EXPECT_FALSE(Address::parse(address.to_string())->is_abstract());
}

TEST(Address, RefusesSystemAddressesOfWrongSize) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  EXPECT_TRUE(Address::from_system(&six, sizeof(six)));
  EXPECT_TRUE(Address::from_system(&four, sizeof(four)));
  EXPECT_EQ(Address::from_system(&six, sizeof(four)).error(), std::errc::invalid_argument);
  EXPECT_EQ(Address::from_system(&four, sizeof(four) - 1).error(), std::errc::invalid_argument);
  EXPECT_EQ(Address::from_system(&four, 1).error(), std::errc::invalid_argument);
  EXPECT_EQ(Address::from_system(&four, 0).error(), std::errc::invalid_argument);
  sockaddr_storage other{};
  EXPECT_EQ(Address::from_system(&other, sizeof(other)).error(), std::errc::invalid_argument);
  other.ss_family = AF_APPLETALK;
  EXPECT_EQ(Address::from_system(&other, 20).error(), std::errc::address_family_not_supported);
  other.ss_family = AF_UNSPEC;
  EXPECT_EQ(Address::from_system(&other, 16)->family(), Family::none);
}

TEST(Address, ReadsUnixNamesAsFilledInByKernel) {
  sockaddr_un system{};
  system.sun_family = AF_UNIX;
  const Address unnamed = *Address::from_system(&system, offsetof(sockaddr_un, sun_path));
  EXPECT_EQ(unnamed, Address());
  EXPECT_EQ(unnamed.to_string(), "none");
  EXPECT_EQ(unnamed.size(), Address().size());
  std::memset(system.sun_path, 'p', sizeof(system.sun_path));  // Without a terminating NUL.
  EXPECT_EQ(Address::from_system(&system, sizeof(system))->name(), std::string(kPathSize, 'p'));
  system.sun_path[3] = '\0';
  EXPECT_EQ(Address::from_system(&system, sizeof(system))->name(), "ppp");
}

// The kernel's copy of such a path has a terminating NUL, which its size counts.
TEST(Address, AcceptsPathThatFillsSockaddrUn) {
  unsigned char system[sizeof(sockaddr_un) + 2] = {};
  const sa_family_t family = AF_UNIX;
  std::memcpy(system + offsetof(sockaddr_un, sun_family), &family, sizeof(family));
  std::memset(system + offsetof(sockaddr_un, sun_path), 'p', sizeof(sockaddr_un::sun_path));
  const Result<Address> address = Address::from_system(system, sizeof(sockaddr_un) + 1);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->name(), std::string(kPathSize, 'p'));
  EXPECT_EQ(address->size(), sizeof(sockaddr_un));
  EXPECT_EQ(Address::parse(address->to_string()).error(), std::errc::filename_too_long);
  EXPECT_EQ(Address::from_system(system, sizeof(system)).error(), std::errc::invalid_argument);
}

TEST(Address, ConvertsIpv4MappedAddressToIpv4) {
  EXPECT_EQ(Address::parse("[::ffff:192.0.2.1]:80")->unmapped(), *Address::parse("192.0.2.1:80"));
  for (const char* text :
       {"192.0.2.1:80", "[2001:db8::1]:80", "[::]:80", "[::1]:80", "[::192.0.2.1]:80", "unix:x"})
    EXPECT_EQ(Address::parse(text)->unmapped(), *Address::parse(text)) << text;
}

TEST(Address, HashesAllPortsOfHostAlike) {
  const Address address = *Address::parse("192.0.2.1:80");
  EXPECT_EQ(address.host_hash(), address.with_port(81).host_hash());
  EXPECT_NE(address, address.with_port(81));
  EXPECT_EQ(address, address.with_port(81).with_port(80));
  EXPECT_NE(address.host_hash(), Address::parse("192.0.2.2:80")->host_hash());
  const Address six = *Address::parse("[2001:db8::1]:80");
  EXPECT_EQ(six.host_hash(), six.with_port(81).host_hash());
  EXPECT_NE(six.host_hash(), Address::parse("[2001:db8::2]:80")->host_hash());
  EXPECT_EQ(Address::path("x")->with_port(80), *Address::path("x"));
}

TEST(Address, ProvidesAnyAndLoopbackAddresses) {
  EXPECT_EQ(Address::any_ipv4(1).to_string(), "0.0.0.0:1");
  EXPECT_EQ(Address::any_ipv6(2).to_string(), "[::]:2");
  EXPECT_EQ(Address::loopback_ipv4(3).to_string(), "127.0.0.1:3");
  EXPECT_EQ(Address::loopback_ipv6(4).to_string(), "[::1]:4");
}

// Returns a path of random bytes other than NUL; those with a meaning in text are more frequent.
std::string some_path(testing::Random& random) {
  constexpr std::string_view kSpecial = "@/:.[]% \n";
  std::string path(1 + random.below(kPathSize - 1), ' ');
  for (char& c : path)
    c = random.one_in(3) ? kSpecial[random.below(kSpecial.size())]
                         : static_cast<char>(1 + random.below(255));
  return path;
}

Address some_ipv4(testing::Random& random) {
  sockaddr_in system{};
  system.sin_family = AF_INET;
  system.sin_port = static_cast<in_port_t>(random.next());
  system.sin_addr.s_addr = static_cast<in_addr_t>(random.next());
  return *Address::from_system(&system, sizeof(system));
}

Address some_ipv6(testing::Random& random) {
  sockaddr_in6 system{};
  system.sin6_family = AF_INET6;
  system.sin6_port = static_cast<in_port_t>(random.next());
  system.sin6_flowinfo = static_cast<std::uint32_t>(random.next());
  for (auto& byte : system.sin6_addr.s6_addr)
    byte = random.one_in(2) ? std::uint8_t{0} : static_cast<std::uint8_t>(random.next());
  if (random.one_in(3))
    system.sin6_scope_id =
        random.one_in(2) ? std::uint32_t{1} : static_cast<std::uint32_t>(random.next());
  return *Address::from_system(&system, sizeof(system));
}

Address some_address(testing::Random& random) {
  switch (random.below(3)) {
    case 0:
      return some_ipv4(random);
    case 1:
      return some_ipv6(random);
    default:
      return *Address::path(some_path(random));
  }
}

TEST(Address, RoundTripsThroughEveryForm) {
  testing::Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const Address address = some_address(random);
    const Result<Address> again = Address::parse(address.to_string());
    ASSERT_TRUE(again) << address.to_string();
    ASSERT_EQ(*again, address) << address.to_string();
    ASSERT_EQ(again->to_string(), address.to_string());
    ASSERT_EQ(*Address::from_system(address.data(), address.size()), address);
    if (!address.is_ip()) continue;
    ASSERT_EQ(*Address::ip(address.host(), address.port()), address);
    ASSERT_EQ(Address::ip(address.ip_bytes(), address.port())->ip_bytes().size(),
              address.ip_bytes().size());
  }
}

}  // namespace
}  // namespace spate
