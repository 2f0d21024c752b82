// Vector16: sixteen bytes that are examined in one step.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace spate {

// Results are masks of sixteen bits; the lowest bit is for the first byte. Bytes are unsigned.
#if defined(__SSE2__)

inline constexpr bool kVectorsPay = true;

class Vector16 {
 public:
  static constexpr int kSize = 16;

  // Reads kSize bytes.
  explicit Vector16(const char* bytes)
      : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))) {}

  std::uint32_t equal(char byte) const { return mask(_mm_cmpeq_epi8(bytes_, all(byte))); }
  // Returns the control characters except the tab, as a mask.
  std::uint32_t controls() const {
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes_, all(0x1f)), bytes_);
    const __m128i tab = _mm_cmpeq_epi8(bytes_, all('\t'));
    return mask(_mm_or_si128(_mm_andnot_si128(tab, low), _mm_cmpeq_epi8(bytes_, all(0x7f))));
  }
  // Bytes that are neither an ASCII letter nor "-".
  std::uint32_t not_of_names() const {
    const __m128i lower = _mm_or_si128(bytes_, all(0x20));
    const __m128i letters =
        _mm_and_si128(_mm_cmpgt_epi8(lower, all('a' - 1)), _mm_cmplt_epi8(lower, all('z' + 1)));
    return mask(_mm_or_si128(letters, _mm_cmpeq_epi8(bytes_, all('-')))) ^ 0xffff;
  }
  // Bytes that equal those of `other` when their lower-case bit is set.
  std::uint32_t equal_in_lower_case(const Vector16& other) const {
    return mask(_mm_cmpeq_epi8(_mm_or_si128(bytes_, all(0x20)), other.bytes_));
  }
  // Bytes outside of the visible ASCII characters 0x21 ... 0x7e.
  std::uint32_t invisible() const {
    const __m128i above = _mm_cmpgt_epi8(bytes_, all(' '));  // Signed comparison: false from 0x80
                                                             // on.
    return mask(_mm_andnot_si128(_mm_cmpeq_epi8(bytes_, all(0x7f)), above)) ^ 0xffff;
  }

 private:
  static __m128i all(char byte) { return _mm_set1_epi8(byte); }
  static std::uint32_t mask(__m128i bytes) {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
  }

  __m128i bytes_;
};

#else

inline constexpr bool kVectorsPay = false;

class Vector16 {
 public:
  static constexpr int kSize = 16;

  explicit Vector16(const char* bytes) { std::memcpy(bytes_, bytes, kSize); }

  std::uint32_t equal(char byte) const {
    return where([byte](unsigned char each) { return each == static_cast<unsigned char>(byte); });
  }
  std::uint32_t controls() const {
    return where([](unsigned char each) { return (each < 0x20 && each != '\t') || each == 0x7f; });
  }
  std::uint32_t not_of_names() const {
    return where([](unsigned char each) {
      return each != '-' && ((each | 0x20) < 'a' || (each | 0x20) > 'z');
    });
  }
  std::uint32_t equal_in_lower_case(const Vector16& other) const {
    std::uint32_t mask = 0;
    for (int i = 0; i < kSize; ++i)
      mask |= static_cast<std::uint32_t>((bytes_[i] | 0x20) == other.bytes_[i]) << i;
    return mask;
  }
  std::uint32_t invisible() const {
    return where([](unsigned char each) { return each <= 0x20 || each >= 0x7f; });
  }

 private:
  template <class Predicate>
  std::uint32_t where(Predicate predicate) const {
    std::uint32_t mask = 0;
    for (int i = 0; i < kSize; ++i) mask |= static_cast<std::uint32_t>(predicate(bytes_[i])) << i;
    return mask;
  }

  unsigned char bytes_[kSize];
};

#endif

}  // namespace spate
