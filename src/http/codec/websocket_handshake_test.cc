#include "http/codec/websocket_handshake.h"

#include <gtest/gtest.h>

#include <string>

#include "http/codec/sha1.h"

namespace spate::http {
namespace {

std::string hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    result += kDigits[static_cast<unsigned char>(c) >> 4];
    result += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return result;
}
std::string sum(std::string_view text) {
  const auto bytes = sha1(text);
  return hex({bytes.data(), bytes.size()});
}

TEST(Sha1, MatchesStandardVectors) {
  EXPECT_EQ(sum(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sum("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sum(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Sha1, PadsTextsOfEverySizeAroundBlock) {
  EXPECT_EQ(sum(std::string(55, 'a')), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  EXPECT_EQ(sum(std::string(56, 'a')), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
  EXPECT_EQ(sum(std::string(64, 'a')), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}

// RFC 6455 §1.3.
TEST(WebSocketHandshake, ComputesAcceptKeyOfStandard) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketHandshake, AcceptsOnlyKeysOfSixteenBytes) {
  EXPECT_TRUE(is_websocket_key(websocket_key({})));
  EXPECT_TRUE(is_websocket_key("dGhlIHNhbXBsZSBub25jZQ=="));
  for (const char* bad :
       {"", "==", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQaa",
        "dGhlIHNhbXBsZSBub25jZ===", "dGhlIHNhbXBsZSBub25jZQ==a", "dGhlIHNhbXBs ZSBub25jZ=="})
    EXPECT_FALSE(is_websocket_key(bad)) << bad;
}

DeflateAgreement agreement_on(std::string_view text) {
  Fields fields;
  fields.set(FieldId::sec_websocket_extensions, text);
  return agree_to_deflate(fields);
}
bool offers(std::string_view text) { return static_cast<bool>(agreement_on(text)); }

TEST(WebSocketHandshake, AgreesToDeflateWithWindowsThatZlibSupports) {
  EXPECT_TRUE(offers("permessage-deflate"));
  EXPECT_TRUE(offers("permessage-deflate; client_max_window_bits"));
  EXPECT_TRUE(offers("permessage-deflate; client_max_window_bits=8"));
  EXPECT_TRUE(offers("permessage-deflate; server_max_window_bits=\"15\""));
  EXPECT_TRUE(offers("x-other, permessage-deflate; server_no_context_takeover"));
  EXPECT_TRUE(offers("permessage-deflate; server_max_window_bits=8, permessage-deflate"));
  EXPECT_FALSE(offers(""));
  EXPECT_FALSE(offers("x-webkit-deflate-frame"));
  EXPECT_FALSE(offers("permessage-deflate; server_max_window_bits=8"));
}

// Python's websockets fails the connection without it.
TEST(WebSocketHandshake, EchoesWindowOnlyIfClientNamesOne) {
  EXPECT_EQ(agreement_on("permessage-deflate").response(), kDeflate);
  EXPECT_EQ(agreement_on("permessage-deflate").window, 15);
  for (int window = 9; window <= 15; ++window) {
    const std::string bits = "server_max_window_bits=" + std::to_string(window);
    const DeflateAgreement agreed = agreement_on("permessage-deflate; " + bits);
    EXPECT_EQ(agreed.window, window);
    EXPECT_EQ(agreed.response(), std::string(kDeflate) + "; " + bits);
  }
}

TEST(WebSocketHandshake, SkipsMalformedOffers) {
  for (const char* bad :
       {"permessage-deflate; unknown", "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=16",
        "permessage-deflate; client_max_window_bits=08",
        "permessage-deflate; client_max_window_bits; client_max_window_bits",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; client_max_window_bits=x"})
    EXPECT_FALSE(offers(bad)) << bad;
}

AgreedExtensions agreed(std::string_view text, bool has_offered = true) {
  Fields fields;
  if (!text.empty()) fields.set(FieldId::sec_websocket_extensions, text);
  return agreed_extensions(fields, has_offered);
}

TEST(WebSocketHandshake, AcceptsOnlyOfferedExtensionsFromServer) {
  EXPECT_EQ(agreed(""), AgreedExtensions::none);
  EXPECT_EQ(agreed(kDeflate), AgreedExtensions::deflate);
  EXPECT_EQ(agreed("permessage-deflate; server_no_context_takeover; server_max_window_bits=10"),
            AgreedExtensions::deflate);
  for (const char* bad :
       {"permessage-deflate", "x-other", "permessage-deflate; client_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=10",
        "permessage-deflate; server_no_context_takeover, permessage-deflate; "
        "server_no_context_takeover"})
    EXPECT_EQ(agreed(bad), AgreedExtensions::bad) << bad;
  EXPECT_EQ(agreed(kDeflate, false), AgreedExtensions::bad);
}

TEST(WebSocketHandshake, ComparesOriginWithHost) {
  EXPECT_TRUE(is_same_origin("", "a"));
  EXPECT_TRUE(is_same_origin("http://a:8080", "a:8080"));
  EXPECT_TRUE(is_same_origin("https://Example.ORG", "example.org"));
  for (const char* other : {"null", "http://b", "http://a:81", "http://a.b", "a", "http://"})
    EXPECT_FALSE(is_same_origin(other, "a")) << other;
}

}  // namespace
}  // namespace spate::http
