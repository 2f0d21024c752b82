// Tests of Address and of PROXY headers: names of unix sockets without a file.
#include <gtest/gtest.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <utility>

#include "spate/net/address.h"
#include "spate/net/proxy_protocol.h"
#include "tests/support/random.h"

namespace spate {
namespace {

TEST(Address, HoldsAbstractNamesOfAnyBytes) {
  const std::string any("a\0b\xff", 4);
  const Address address = *Address::abstract(any);
  EXPECT_TRUE(address.is_abstract());
  EXPECT_EQ(address.name(), any);
  EXPECT_EQ(*Address::parse(address.to_string()), address);
  EXPECT_EQ(address.size(), offsetof(sockaddr_un, sun_path) + 1 + any.size());
  EXPECT_EQ(Address::abstract(std::string(107, 'n'))->name(), std::string(107, 'n'));
  EXPECT_EQ(Address::abstract(std::string(108, 'n')).error(), std::errc::filename_too_long);
  EXPECT_NE(*Address::abstract("x"), *Address::path("x"));
  EXPECT_NE(*Address::abstract("x"), *Address::abstract(std::string_view("x\0", 2)));
}

std::string some_name(testing::Random& random) {
  std::string name(random.below(108), ' ');
  for (char& c : name) c = random.one_in(3) ? '@' : static_cast<char>(random.next());
  return name;
}

TEST(Address, RoundTripsAbstractNamesThroughEveryForm) {
  testing::Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const Address address = *Address::abstract(some_name(random));
    const Result<Address> again = Address::parse(address.to_string());
    ASSERT_TRUE(again) << address.to_string();
    ASSERT_EQ(*again, address) << address.to_string();
    ASSERT_EQ(again->to_string(), address.to_string());
    ASSERT_EQ(*Address::from_system(address.data(), address.size()), address);
  }
}

TEST(ProxyHeaderText, HasAbstractNamesInVersion2) {
  const Address path = *Address::path("/run/s.sock");
  const Address abstract = *Address::abstract("name");
  for (const auto& [source, destination] : {std::pair{path, abstract}, std::pair{abstract, path}}) {
    const std::string text = proxy_header(source, destination);
    EXPECT_NE(text.find(std::string("\0name\0", 6)), std::string::npos);
    const ProxyHeader header = parse_proxy_header(bytes_of(text));
    EXPECT_EQ(header.source, source);
    EXPECT_EQ(header.destination, destination);
  }
}

}  // namespace
}  // namespace spate
