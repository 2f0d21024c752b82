// HPACK: the examples of RFC 7541 appendix C, and blocks that are wrong.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "http2/hpack_decoder.h"
#include "http2/hpack_encoder.h"
#include "http2/hpack_huffman.h"

namespace spate::http {
namespace {

using HpackFields = std::vector<std::pair<std::string, std::string>>;

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

// Decodes a whole block. Returns the last step.
HpackStep decode(HpackDecoder& decoder, std::string_view block, HpackFields& fields) {
  decoder.begin_block();
  HpackField field;
  HpackStep step;
  while ((step = decoder.next(block, field)) == HpackStep::field)
    fields.emplace_back(field.name, field.value);
  return step;
}
HpackStep step_of(std::string_view block) {
  HpackDecoder decoder;
  HpackFields fields;
  return decode(decoder, block, fields);
}

const HpackFields kFirst = {
    {":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"}};
const HpackFields kSecond = {{":method", "GET"},
                             {":scheme", "http"},
                             {":path", "/"},
                             {":authority", "www.example.com"},
                             {"cache-control", "no-cache"}};
const HpackFields kThird = {{":method", "GET"},
                            {":scheme", "https"},
                            {":path", "/index.html"},
                            {":authority", "www.example.com"},
                            {"custom-key", "custom-value"}};

TEST(HpackDecoder, TakesRequestsOfRfc) {
  const std::string_view plain[] = {"828684410f7777772e6578616d706c652e636f6d",
                                    "828684be58086e6f2d6361636865",
                                    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565"};
  const std::string_view coded[] = {"828684418cf1e3c2e5f23a6ba0ab90f4ff",
                                    "828684be5886a8eb10649cbf",
                                    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"};
  for (const auto& blocks : {plain, coded}) {
    HpackDecoder decoder;
    const HpackFields* wanted[] = {&kFirst, &kSecond, &kThird};
    for (int i = 0; i < 3; ++i) {
      HpackFields fields;
      EXPECT_EQ(decode(decoder, from_hex(blocks[i]), fields), HpackStep::end);
      EXPECT_EQ(fields, *wanted[i]);
    }
    EXPECT_EQ(decoder.entries(), 3u);
  }
}

// The table of 256 bytes evicts.
TEST(HpackDecoder, TakesResponsesOfRfcInSmallTable) {
  const std::string_view blocks[] = {
      "3fe1014803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a3231"
      "20474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
      "4803333037c1c0bf",
      "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f"
      "3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076"
      "657273696f6e3d31"};
  const HpackFields wanted[] = {
      {{":status", "302"},
       {"cache-control", "private"},
       {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
       {"location", "https://www.example.com"}},
      {{":status", "307"},
       {"cache-control", "private"},
       {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
       {"location", "https://www.example.com"}},
      {{":status", "200"},
       {"cache-control", "private"},
       {"date", "Mon, 21 Oct 2013 20:13:22 GMT"},
       {"location", "https://www.example.com"},
       {"content-encoding", "gzip"},
       {"set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"}}};
  HpackDecoder decoder;
  for (int i = 0; i < 3; ++i) {
    HpackFields fields;
    EXPECT_EQ(decode(decoder, from_hex(blocks[i]), fields), HpackStep::end);
    EXPECT_EQ(fields, wanted[i]);
  }
  EXPECT_EQ(decoder.entries(), 3u);
}

TEST(HpackDecoder, WaitsForRestOfField) {
  const std::string block = from_hex("828785be408825a849e95ba97d7f8925a849e95bb8e8b4bf");
  HpackDecoder decoder;
  HpackFields fields;
  ASSERT_EQ(decode(decoder, from_hex("828684410f7777772e6578616d706c652e636f6d"), fields),
            HpackStep::end);
  fields.clear();
  decoder.begin_block();
  std::string fragment;
  for (const char byte : block) {
    fragment += byte;
    std::string_view rest = fragment;
    HpackField field;
    HpackStep step;
    while ((step = decoder.next(rest, field)) == HpackStep::field)
      fields.emplace_back(field.name, field.value);
    EXPECT_TRUE(step == HpackStep::end || step == HpackStep::incomplete);
    fragment.erase(0, fragment.size() - rest.size());
  }
  EXPECT_TRUE(fragment.empty());
  EXPECT_EQ(fields.size(), 5u);
  EXPECT_EQ(fields.back(), kThird.back());
}

TEST(HpackDecoder, RejectsInvalidBlocks) {
  const std::string_view invalid[] = {
      "80",                // Index 0,
      "be",                // one of an empty table,
      "ffffffffff7f",      // a large one,
      "ffffffffffff7f",    // and one of too many bytes.
      "7f00",              // The index of a name.
      "3fe21f",            // A table that is larger than allowed.
      "8220",              // A new size behind a field.
      "0001618161",        // Huffman: padding with zeros,
      "00016184ffffffff",  // EOS,
      "00016182ffff",      // and two bytes of padding.
      "007f82ff03",        // A name of 65,537 bytes.
  };
  for (const std::string_view block : invalid)
    EXPECT_EQ(step_of(from_hex(block)), HpackStep::invalid) << block;
  EXPECT_EQ(step_of(from_hex("00016185ff")), HpackStep::incomplete);
  EXPECT_EQ(step_of(from_hex("007f81ff03")), HpackStep::incomplete);
  EXPECT_EQ(step_of(from_hex("2020")), HpackStep::end);
}

TEST(HpackDecoder, ReportsMemoryThatRanOut) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 100);
  const FaultScope scope(plan);
  EXPECT_EQ(step_of(from_hex("400161"
                             "0162")),
            HpackStep::no_memory);
  EXPECT_EQ(step_of(from_hex("82")), HpackStep::end);
}

TEST(HpackHuffman, ReturnsTextThatWasCoded) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (std::size_t begin = 0; begin < all.size(); ++begin) {
    const std::string_view text = std::string_view(all).substr(begin);
    std::string coded(huffman_size(text), '\0');
    EXPECT_EQ(huffman_encode(text, coded.data()), coded.data() + coded.size());
    std::string decoded(huffman_room(coded.size()), '\0');
    char* const end = huffman_decode(coded, decoded.data());
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(std::string_view(decoded.data(), end), text);
  }
}

// ---- encoding

class HpackEncoding : public ::testing::Test {
 protected:
  // Encodes, and expects that decoding returns the same. Returns the block's size.
  std::size_t encode(const HpackFields& fields) {
    std::vector<Http2Field> views;
    for (const auto& [name, value] : fields) views.push_back({name, value});
    Array<char> block;
    EXPECT_TRUE(encoder_.encode(views, block));
    HpackFields decoded;
    EXPECT_EQ(decode(decoder_, {block.begin(), block.size()}, decoded), HpackStep::end);
    EXPECT_EQ(decoded, fields);
    return block.size();
  }

  HpackEncoder encoder_;
  HpackDecoder decoder_;
};

TEST_F(HpackEncoding, UsesIndexForRepeatedFields) {
  EXPECT_EQ(encode(kFirst), 17u);
  EXPECT_EQ(encode(kFirst), 4u);
  EXPECT_EQ(encode(kThird), 23u + 1u);
  EXPECT_EQ(encode(kThird), 5u);
  EXPECT_EQ(encode({{"custom-key", "other"}}), 6u);
}

TEST_F(HpackEncoding, AddsNoSecretsAndNoSingularValues) {
  const HpackFields fields = {
      {":path", "/path"},       {"authorization", "secret"},  {"cookie", "short"},
      {"content-length", "13"}, {"set-cookie", "a=b"},        {"etag", "\"a\""},
      {"location", "/other"},   {"proxy-authorization", "x"}, {"if-none-match", "\"b\""}};
  encode(fields);
  EXPECT_EQ(decoder_.entries(), 0u);
}

TEST_F(HpackEncoding, SendsNamesInLowerCase) {
  const Http2Field fields[] = {{"Link", "a"}, {"X-Some", "B"}, {"link", "a"}};
  Array<char> block;
  ASSERT_TRUE(encoder_.encode(fields, block));
  HpackFields decoded;
  decode(decoder_, {block.begin(), block.size()}, decoded);
  EXPECT_EQ(decoded, (HpackFields{{"link", "a"}, {"x-some", "B"}, {"link", "a"}}));
  EXPECT_EQ(decoder_.entries(), 2u);
}

TEST_F(HpackEncoding, AnnouncesLeastAndLastLimit) {
  encode({{"x", "y"}});
  ASSERT_EQ(decoder_.entries(), 1u);
  encoder_.set_limit(0);
  encoder_.set_limit(100);
  EXPECT_EQ(encode({}), 3u);
  EXPECT_EQ(decoder_.entries(), 0u);
  encode(kSecond);
  encoder_.set_limit(1 << 20);
  encode(kThird);
  encode(kThird);
}

TEST_F(HpackEncoding, EvictsAsDecoderDoes) {
  for (int i = 0; i < 500; ++i) {
    const std::string text = std::to_string(i * 7 % 90);
    encode({{"x-" + text, std::string(static_cast<std::size_t>(i % 50), 'v') + text},
            {"server", "spate"},
            {"long", std::string(static_cast<std::size_t>(i * 10), 'l')}});
  }
}

TEST_F(HpackEncoding, ReportsMemoryThatRanOut) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 100);
  const FaultScope scope(plan);
  const Http2Field field = {"a", "b"};
  Array<char> block;
  EXPECT_FALSE(encoder_.encode({&field, 1}, block));
}

}  // namespace
}  // namespace spate::http
