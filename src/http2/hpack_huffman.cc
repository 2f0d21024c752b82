#include "http2/hpack_huffman.h"

#include <array>
#include <cstdint>

namespace spate::http {

namespace {

constexpr std::size_t kSymbols = 257;  // The last one is EOS.
constexpr unsigned kLongest = 30;
constexpr unsigned kDirect = 8;  // Codes up to this length are found by one look-up.

// The length of each symbol's code. The code is canonical, so the lengths define it.
constexpr std::array<std::uint8_t, kSymbols> kLengths = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,  //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,  //
    6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,   //
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10,  //
    13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,   //
    7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,   //
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,   //
    6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28,  //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,  //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,  //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,  //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,  //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,  //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,  //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,  //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,  //
    30,
};

// The codes, in the order of their length and then of their symbols.
struct Code {
  std::array<std::uint32_t, kSymbols> bits{};       // Of each symbol, at the low end.
  std::array<std::uint16_t, kSymbols> symbols{};    // In order.
  std::array<std::uint32_t, kLongest + 1> first{};  // Of each length: the first code,
  std::array<std::uint64_t, kLongest + 1> limit{};  // the end, both at the high end,
  std::array<std::uint16_t, kLongest + 1> index{};  // and the index of the first symbol.
  struct Direct {
    std::uint8_t symbol = 0;
    std::uint8_t length = 0;  // 0: the code is longer.
  };
  std::array<Direct, 1 << kDirect> direct{};
};

consteval Code make_code() {
  Code code;
  std::uint64_t next = 0;  // At the high end of 32 bits.
  std::uint16_t count = 0;
  for (unsigned length = 1; length <= kLongest; ++length) {
    code.first[length] = static_cast<std::uint32_t>(next);
    code.index[length] = count;
    for (std::size_t symbol = 0; symbol < kSymbols; ++symbol) {
      if (kLengths[symbol] != length) continue;
      code.bits[symbol] = static_cast<std::uint32_t>(next >> (32 - length));
      code.symbols[count++] = static_cast<std::uint16_t>(symbol);
      if (length <= kDirect)
        for (std::size_t rest = 0; rest < (std::size_t{1} << (kDirect - length)); ++rest)
          code.direct[(next >> (32 - kDirect)) + rest] = {static_cast<std::uint8_t>(symbol),
                                                          static_cast<std::uint8_t>(length)};
      next += std::uint64_t{1} << (32 - length);
    }
    code.limit[length] = next;
  }
  return code;
}

constexpr Code kCode = make_code();
static_assert(kCode.limit[kLongest] == std::uint64_t{1} << 32, "the code is complete");

struct Symbol {
  unsigned value;
  unsigned length;
};

// Returns the first symbol of these bits, whose code is longer than kDirect.
Symbol find_long(std::uint32_t bits) {
  unsigned length = kDirect + 1;
  while (bits >= kCode.limit[length]) ++length;
  const std::uint32_t place = (bits - kCode.first[length]) >> (32 - length);
  return {kCode.symbols[kCode.index[length] + place], length};
}

}  // namespace

std::size_t huffman_size(std::string_view text) {
  std::size_t bits = 0;
  for (const char c : text) bits += kLengths[static_cast<unsigned char>(c)];
  return (bits + 7) / 8;
}

char* huffman_encode(std::string_view text, char* target) {
  std::uint64_t bits = 0;  // The low `count` are not written yet.
  unsigned count = 0;
  for (const char c : text) {
    const auto symbol = static_cast<unsigned char>(c);
    bits = bits << kLengths[symbol] | kCode.bits[symbol];
    count += kLengths[symbol];
    for (; count >= 8; count -= 8) *target++ = static_cast<char>(bits >> (count - 8));
  }
  // The rest is filled with ones, which begin EOS.
  if (count > 0) *target++ = static_cast<char>(bits << (8 - count) | 0xffu >> count);
  return target;
}

char* huffman_decode(std::string_view coded, char* target) {
  const char* at = coded.data();
  const char* const end = at + coded.size();
  std::uint64_t bits = 0;  // The high `count` are not decoded yet.
  unsigned count = 0;
  for (;;) {
    for (; count <= 56 && at != end; count += 8)
      bits |= std::uint64_t{static_cast<unsigned char>(*at++)} << (56 - count);
    if (count == 0) return target;
    const Code::Direct direct = kCode.direct[bits >> (64 - kDirect)];
    Symbol symbol = {direct.symbol, direct.length};
    if (direct.length == 0) symbol = find_long(static_cast<std::uint32_t>(bits >> 32));
    if (symbol.length > count || symbol.value == kSymbols - 1) break;
    *target++ = static_cast<char>(symbol.value);
    bits <<= symbol.length;
    count -= symbol.length;
  }
  // The padding: less than a byte, of ones.
  const bool is_padding = count < 8 && bits >> (64 - count) == (1u << count) - 1;
  return is_padding ? target : nullptr;
}

}  // namespace spate::http
