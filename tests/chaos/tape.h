// Tape: the source of a random program's decisions: a seed, or a fuzzer's bytes. After the last
// byte every decision is 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/random.h"

namespace spate::chaos {

class Tape {
 public:
  explicit Tape(std::uint64_t seed) : random_(seed) {}
  Tape(const std::uint8_t* data, std::size_t size)
      : random_(0), at_(data), end_(data + size), is_bytes_(true) {}

  // A seed's tape never ends.
  bool is_over() const { return is_bytes_ && at_ == end_; }
  // Returns 0 ... bound - 1; uses as few bytes as possible.
  std::size_t below(std::size_t bound) {
    if (bound <= 1) return 0;
    if (!is_bytes_) return random_.below(bound);
    std::size_t value = byte();
    if (bound > 256) value = value << 8 | byte();
    if (bound > 65536) value = value << 8 | byte();
    return value % bound;
  }
  bool one_in(std::size_t n) { return below(n) == n - 1; }
  std::uint32_t number() { return static_cast<std::uint32_t>(below(1u << 24)); }

 private:
  std::uint8_t byte() { return at_ == end_ ? std::uint8_t{0} : *at_++; }

  testing::Random random_;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool is_bytes_ = false;
};

}  // namespace spate::chaos
