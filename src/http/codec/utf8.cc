#include "http/codec/utf8.h"

#include <cstring>

namespace spate::http {

namespace {

constexpr std::uint8_t kNever = 0xff;  // For invalid first bytes, as the number of missing ones.

// Skips ASCII. The first other byte is within the 32 bytes from the result on, or near the end.
const std::uint8_t* skip_ascii(const std::uint8_t* at, const std::uint8_t* end) {
  while (end - at >= 32) {
    std::uint64_t words[4];
    std::memcpy(words, at, sizeof(words));
    if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080) != 0) break;
    at += sizeof(words);
  }
  while (end - at >= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    if ((word & 0x8080808080808080) != 0) break;
    at += sizeof(word);
  }
  while (at != end && *at < 0x80) ++at;
  return at;
}

}  // namespace

// The bounds of the second byte exclude overlong forms (e0, f0), surrogates (ed) and code points
// above U+10FFFF (f4).
bool Utf8Check::begin(std::uint8_t first) {
  low_ = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  high_ = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (first < 0xc2 || first > 0xf4) return false;
  missing_ = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  return true;
}

bool Utf8Check::fail() {
  missing_ = kNever;
  return false;
}

bool Utf8Check::add(Bytes bytes) {
  if (missing_ == kNever) return false;
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::uint8_t* const end = at + bytes.size();
  for (; at != end; ++at) {
    if (missing_ == 0) {
      at = skip_ascii(at, end);
      if (at == end) return true;
      if (!begin(*at)) return fail();
    } else {
      if (*at < low_ || *at > high_) return fail();
      --missing_;
      low_ = 0x80;
      high_ = 0xbf;
    }
  }
  return true;
}

}  // namespace spate::http
