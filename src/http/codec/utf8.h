// Utf8Check: whether a text is UTF-8 (RFC 3629), piece by piece: neither longer than need be, nor a
// half of a surrogate pair, nor beyond U+10FFFF.
#pragma once

#include <cstdint>

#include "spate/net/bytes.h"

namespace spate::http {

class Utf8Check {
 public:
  // False, and then always: no text begins so.
  bool add(Bytes bytes);
  // The text may end here.
  bool is_complete() const { return missing_ == 0; }

 private:
  bool begin(std::uint8_t first);
  bool fail();

  // Of a character that has begun: how many bytes of it are to come, and the bounds of the next.
  std::uint8_t missing_ = 0;
  std::uint8_t low_ = 0x80;
  std::uint8_t high_ = 0xbf;
};

inline bool is_utf8(Bytes bytes) {
  Utf8Check check;
  return check.add(bytes) && check.is_complete();
}

}  // namespace spate::http
