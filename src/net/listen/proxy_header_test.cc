#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "spate/net/proxy_protocol.h"

namespace spate {
namespace {

using HeaderState = ProxyHeader::State;

// Parses a header. Also checks that each proper prefix of it is unfinished, and that bytes after it
// are ignored.
ProxyHeader header_of(const std::string& text) {
  for (std::size_t size = 0; size < text.size(); ++size) {
    const ProxyHeader part = parse_proxy_header(bytes_of(std::string_view(text).substr(0, size)));
    EXPECT_EQ(part.state, HeaderState::unfinished) << size;
    EXPECT_GT(part.size, size);
    EXPECT_LE(part.size, text.size());
  }
  const std::string more = text + "GET / HTTP/1.1\r\n";
  const ProxyHeader header = parse_proxy_header(bytes_of(more));
  EXPECT_EQ(header.state, HeaderState::whole) << text;
  EXPECT_EQ(header.size, text.size());
  return header;
}
HeaderState state_of_header(std::string_view text) {
  return parse_proxy_header(bytes_of(text)).state;
}

std::string block(int version_and_command, int family, std::string_view body) {
  std::string text("\r\n\r\n\0\r\nQUIT\n", 12);
  text += static_cast<char>(version_and_command);
  text += static_cast<char>(family);
  text += static_cast<char>(body.size() >> 8);
  text += static_cast<char>(body.size());
  return text.append(body);
}
const std::string kFour("\xc0\0\2\1\xc0\0\2\2\x1f\x90\0\x50", 12);

TEST(ProxyLine, ParsesAddresses) {
  const ProxyHeader four = header_of("PROXY TCP4 192.0.2.1 192.0.2.2 8080 80\r\n");
  EXPECT_EQ(four.source, *Address::parse("192.0.2.1:8080"));
  EXPECT_EQ(four.destination, *Address::parse("192.0.2.2:80"));
  const ProxyHeader six = header_of("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n");
  EXPECT_EQ(six.source, *Address::parse("[2001:db8::1]:65535"));
  EXPECT_EQ(six.destination, *Address::parse("[::1]:0"));
}

TEST(ProxyLine, HasNoAddressesForUnknown) {
  for (const char* text : {"PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
                           "PROXY UNKNOWN anything\r\n"}) {
    EXPECT_EQ(header_of(text).source.family(), Address::Family::none);
    EXPECT_EQ(header_of(text).destination.family(), Address::Family::none);
  }
}

TEST(ProxyLine, IsRefusedIfMalformed) {
  for (const char* text : {"GET / HTTP/1.1\r\n",
                           "P\r\n",
                           "proxy TCP4",
                           "PROXY\r\n",
                           "PROXY \r\n",
                           "PROXY TCP4\r\n",
                           "PROXY TCP4 \r\n",
                           "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
                           "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
                           "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.256 1 2\r\n",
                           "PROXY TCP4 ::1 ::2 1 2\r\n",
                           "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
                           "PROXY TCP6 fe80::1%lo ::1 1 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\r\n",
                           "PROXY UNKNOWNX\r\n",
                           "PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n",
                           "PROXY TCP4 192.0.2.1 192.0.2.2  2\r\n"})
    EXPECT_EQ(state_of_header(text), HeaderState::broken) << text;
}

TEST(ProxyLine, HasLimit) {
  const std::string start = "PROXY UNKNOWN ";
  const std::string longest = start + std::string(kMostProxyLine - 2 - start.size(), 'x') + "\r\n";
  EXPECT_EQ(longest.size(), 107u);
  header_of(longest);
  const std::string longer = start + std::string(kMostProxyLine - 1 - start.size(), 'x') + "\r\n";
  EXPECT_EQ(state_of_header(longer), HeaderState::broken);
  EXPECT_EQ(state_of_header(longer.substr(0, 107)), HeaderState::broken);
  EXPECT_EQ(state_of_header(longer.substr(0, 106)), HeaderState::unfinished);
}

TEST(ProxyBlock, ParsesAddresses) {
  const ProxyHeader four = header_of(block(0x21, 0x11, kFour));
  EXPECT_EQ(four.source, *Address::parse("192.0.2.1:8080"));
  EXPECT_EQ(four.destination, *Address::parse("192.0.2.2:80"));
  const std::string zeros(13, '\0');
  const ProxyHeader six = header_of(block(
      0x21, 0x21, "\x20\x01" + zeros + "\1\x20\x01" + zeros + "\2" + std::string("\0\1\0\2", 4)));
  EXPECT_EQ(six.source, *Address::parse("[2001::1]:1"));
  EXPECT_EQ(six.destination, *Address::parse("[2001::2]:2"));
  std::string paths(216, '\0');
  paths.replace(0, 4, "/run");
  paths.replace(108, 3, "/ab");
  const ProxyHeader local = header_of(block(0x21, 0x31, paths));
  EXPECT_EQ(local.source, *Address::path("/run"));
  EXPECT_EQ(local.destination, *Address::path("/ab"));
}

TEST(ProxyBlock, HasNoAddressesForLocalCommand) {
  for (const std::string& text : {block(0x20, 0x00, ""), block(0x20, 0x11, kFour),
                                  block(0x20, 0xf1, "junk"), block(0x21, 0x00, "")})
    EXPECT_EQ(header_of(text).source.family(), Address::Family::none);
}

TEST(ProxyBlock, MayHaveExtensions) {
  const std::string extensions("\2\0\1h\4\0\0", 7);
  const std::string text = block(0x21, 0x11, kFour + extensions);
  const ProxyHeader header = parse_proxy_header(bytes_of(text));
  EXPECT_EQ(text_of(header.extensions), extensions);
  for (const std::string& bad : {std::string("\2"), std::string("\2\0", 2),
                                 std::string("\2\0\1", 3), std::string("\2\0\1h\4\0\1", 7)})
    EXPECT_EQ(state_of_header(block(0x21, 0x11, kFour + bad)), HeaderState::broken);
}

TEST(ProxyBlock, IsRefusedIfMalformed) {
  for (const auto& [command, family] : std::vector<std::pair<int, int>>{{0x22, 0x11},
                                                                        {0x11, 0x11},
                                                                        {0x31, 0x11},
                                                                        {0x2f, 0x11},
                                                                        {0x21, 0x41},
                                                                        {0x21, 0xf0},
                                                                        {0x21, 0x13},
                                                                        {0x20, 0x1f}})
    EXPECT_EQ(state_of_header(block(command, family, std::string(300, '\0'))), HeaderState::broken)
        << command << family;
  EXPECT_EQ(state_of_header(block(0x21, 0x11, kFour.substr(1))), HeaderState::broken);
  EXPECT_EQ(state_of_header(block(0x21, 0x21, std::string(35, '\0'))), HeaderState::broken);
  EXPECT_EQ(state_of_header(block(0x21, 0x31, std::string(215, '\0'))), HeaderState::broken);
  EXPECT_EQ(state_of_header("\r\n\r\nx"), HeaderState::broken);
}

TEST(ProxyBlock, HasLimit) {
  header_of(block(0x20, 0x00, std::string(4096, 'x')));
  const std::string longer = block(0x20, 0x00, std::string(4097, 'x'));
  EXPECT_EQ(state_of_header(longer.substr(0, 16)), HeaderState::broken);
}

void expect_roundtrip(const std::string& text, const Address& source, const Address& destination) {
  const ProxyHeader header = header_of(text);
  EXPECT_EQ(header.source, source) << source.to_string();
  EXPECT_EQ(header.destination, destination) << destination.to_string();
}

TEST(ProxyHeaderText, ParsesAsItsAddresses) {
  const auto text = [](std::string_view address) { return must(Address::parse(address)); };
  const std::pair<Address, Address> pairs[] = {
      {text("192.0.2.1:1234"), text("192.0.2.2:80")},
      {text("[2001:db8::1]:1"), text("[2001:db8::2]:65535")},
      {text("255.255.255.255:65535"), text("0.0.0.0:0")}};
  for (const auto& [source, destination] : pairs)
    for (const ProxyVersion version : {ProxyVersion::v1, ProxyVersion::v2})
      expect_roundtrip(proxy_header(source, destination, version), source, destination);
  EXPECT_EQ(proxy_header(pairs[0].first, pairs[0].second, ProxyVersion::v1),
            "PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n");
}

TEST(ProxyHeaderText, WritesTwoFamiliesAsIpv6) {
  const Address four = must(Address::parse("192.0.2.1:1234"));
  const Address mapped = must(Address::parse("[::ffff:192.0.2.1]:1234"));
  const Address six = must(Address::parse("[2001:db8::1]:80"));
  for (const ProxyVersion version : {ProxyVersion::v1, ProxyVersion::v2}) {
    expect_roundtrip(proxy_header(four, six, version), mapped, six);
    expect_roundtrip(proxy_header(six, four, version), six, mapped);
    expect_roundtrip(proxy_header(mapped, mapped, version), four, four);
  }
}

TEST(ProxyHeaderText, HasPathsOfUnixSocketsInVersion2) {
  const Address path = must(Address::path("/run/s.sock"));
  const Address other = must(Address::path("other"));
  expect_roundtrip(proxy_header(path, other), path, other);
  expect_roundtrip(proxy_header(other, path), other, path);
  EXPECT_EQ(proxy_header(path, path, ProxyVersion::v1), "PROXY UNKNOWN\r\n");
}

TEST(ProxyHeaderText, HasNoAddressesUnlessBothAreOfOneKind) {
  const Address four = must(Address::parse("192.0.2.1:1234"));
  const Address path = must(Address::path("/run/s.sock"));
  for (const auto& [source, destination] :
       {std::pair{four, Address()}, std::pair{Address(), four}, std::pair{four, path},
        std::pair{Address(), Address()}}) {
    EXPECT_EQ(proxy_header(source, destination, ProxyVersion::v1), "PROXY UNKNOWN\r\n");
    EXPECT_EQ(proxy_header(source, destination),
              std::string("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16));
  }
}

}  // namespace
}  // namespace spate
