// Utf8Check: validates UTF-8 (RFC 3629) incrementally: no overlong forms, no surrogates, nothing
// above U+10FFFF.
#pragma once

#include <cstdint>

#include "spate/net/bytes.h"

namespace spate::http {

class Utf8Check {
 public:
  // Checks further bytes. After an invalid byte it always returns false.
  bool add(Bytes bytes);
  // True if no character is incomplete.
  bool is_complete() const { return missing_ == 0; }

 private:
  bool begin(std::uint8_t first);
  bool fail();

  // How many bytes of the current character are missing, and the bounds of the next one.
  std::uint8_t missing_ = 0;
  std::uint8_t low_ = 0x80;
  std::uint8_t high_ = 0xbf;
};

inline bool is_utf8(Bytes bytes) {
  Utf8Check check;
  return check.add(bytes) && check.is_complete();
}

}  // namespace spate::http
