#include "http/codec/sha1.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace spate::http {

namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kLength = 8;  // The last block ends with the size of the text in bits.
using Sum = std::array<std::uint32_t, 5>;

std::uint32_t word_at(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

struct Round {
  std::uint32_t mixed;
  std::uint32_t constant;
};
Round round(std::size_t number, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  switch (number / 20) {
    case 0:
      return {(b & c) | (~b & d), 0x5a827999};
    case 1:
      return {b ^ c ^ d, 0x6ed9eba1};
    case 2:
      return {(b & c) | (b & d) | (c & d), 0x8f1bbcdc};
    default:
      return {b ^ c ^ d, 0xca62c1d6};
  }
}

void add_block(Sum& sum, const unsigned char* block) {
  std::array<std::uint32_t, 80> words;
  for (std::size_t i = 0; i < 16; ++i) words[i] = word_at(block + 4 * i);
  for (std::size_t i = 16; i < words.size(); ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = sum;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Round now = round(i, b, c, d);
    const std::uint32_t next = std::rotl(a, 5) + now.mixed + e + now.constant + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  sum = {sum[0] + a, sum[1] + b, sum[2] + c, sum[3] + d, sum[4] + e};
}

}  // namespace

std::array<char, 20> sha1(std::string_view text) {
  Sum sum = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (; text.size() >= kBlock; text.remove_prefix(kBlock))
    add_block(sum, reinterpret_cast<const unsigned char*>(text.data()));
  unsigned char last[2 * kBlock] = {};
  std::memcpy(last, text.data(), text.size());
  last[text.size()] = 0x80;
  const std::size_t size = text.size() + 1 + kLength <= kBlock ? kBlock : 2 * kBlock;
  for (std::size_t i = 0; i < kLength; ++i)
    last[size - 1 - i] = static_cast<unsigned char>(bits >> 8 * i);
  for (std::size_t at = 0; at < size; at += kBlock) add_block(sum, last + at);
  std::array<char, 20> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(sum[i / 4] >> (24 - 8 * (i % 4)));
  return bytes;
}

}  // namespace spate::http
