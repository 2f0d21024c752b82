// Input: the bytes that a fuzzer gives, as the choices that a target makes. At the end of them all
// choices are the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace spate::fuzz {

// Aborts unless `holds`. libFuzzer reports only crashes.
inline void check(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }
  // 0 ... bound - 1.
  std::size_t below(std::size_t bound) {
    if (bound <= 1) return 0;
    return static_cast<std::size_t>(number(bound > 256 ? 4 : 1)) % bound;
  }
  bool flag() { return (byte() & 1) != 0; }
  // The next bytes, `most` at most, as they are in the input.
  std::string_view text(std::size_t max) {
    const std::string_view taken = rest_.substr(0, below(max + 1));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace spate::fuzz
