// Well-formed frames of HTTP/2, chosen by an Input: only their contents and their order may be
// wrong. So no input is wasted on bytes that HPACK cannot produce.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "input.h"

namespace spate::fuzz {

inline std::string number4(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// A field, literally.
inline std::string coded(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + std::string(name) +
         static_cast<char>(value.size()) + std::string(value);
}

class Http2FrameMaker {
 public:
  // `heads` are coded, and so are `fields`, of which some are added; streams are 1, 3, ...
  Http2FrameMaker(Input& input, std::span<const std::string> heads,
                  std::span<const std::string> fields)
      : input_(input), heads_(heads), fields_(fields) {}

  std::string next() {
    switch (input_.below(14)) {
      case 0:
      case 1:
      case 2:
        return headers(heads_[input_.below(heads_.size())]);
      case 3:
        return headers("");
      case 4:
      case 5:
      case 6:
        return data();
      case 7:
        return frame(3, 0, stream(), number4(kCodes[input_.below(kCodes.size())]));
      case 8:
        return frame(8, 0, input_.flag() ? 0 : stream(),
                     number4(kSizes[input_.below(kSizes.size())]));
      case 9:
        return setting();
      case 10:
        return frame(7, 0, 0, number4(stream()) + number4(kCodes[input_.below(kCodes.size())]));
      case 11:
        return frame(6, static_cast<char>(input_.below(2)), 0, "01234567");
      case 12:
        return frame(0x10, 0, 0, number4(stream()) + (input_.flag() ? "u=1, i" : "u=9"));
      default:
        return frame(2, 0, stream(), number4(stream()) + "\x10");
    }
  }

 private:
  static constexpr std::array<std::uint32_t, 6> kCodes = {0, 1, 2, 7, 8, 11};
  static constexpr std::array<std::uint32_t, 8> kSizes = {1,     100,        1000,       5000,
                                                          65535, 0x3fffffff, 0x7fffffff, 0};

  static std::string frame(int type, char flags, std::uint32_t stream, std::string_view payload) {
    return number4(static_cast<std::uint32_t>(payload.size())).substr(1) + static_cast<char>(type) +
           flags + number4(stream) + std::string(payload);
  }
  std::uint32_t stream() {
    const std::size_t chosen = input_.below(32);
    return static_cast<std::uint32_t>(chosen < 30 ? 1 + 2 * (chosen / 2) : chosen - 30);
  }
  std::string headers(std::string block) {
    const std::size_t more = input_.below(4);
    for (std::size_t i = 0; i < more; ++i) block += fields_[input_.below(fields_.size())];
    const std::uint32_t id = stream();
    const std::size_t flags = input_.below(4);
    const char end = (flags & 1) != 0 ? 1 : 0;
    if ((flags & 2) == 0 || block.empty()) return frame(1, static_cast<char>(end | 4), id, block);
    const std::size_t cut = input_.below(block.size());
    return frame(1, end, id, block.substr(0, cut)) + frame(9, 4, id, block.substr(cut));
  }
  std::string data() {
    constexpr std::array<std::size_t, 6> kLengths = {0, 1, 5, 100, 500, 900};
    const std::string text(kLengths[input_.below(kLengths.size())], 'x');
    const std::uint32_t id = stream();
    const std::size_t flags = input_.below(4);
    const char end = (flags & 1) != 0 ? 1 : 0;
    if (flags < 2) return frame(0, end, id, text);
    return frame(0, static_cast<char>(end | 8), id, "\3" + text + std::string(3, '\0'));
  }
  std::string setting() {
    if (input_.below(4) == 0) return frame(4, 1, 0, "");
    const std::uint32_t value = kSizes[input_.below(kSizes.size())];
    return frame(4, 0, 0,
                 std::string{'\0', static_cast<char>(1 + input_.below(9))} +
                     number4(input_.flag() ? value : value & 1));
  }

  Input& input_;
  std::span<const std::string> heads_;
  std::span<const std::string> fields_;
};

}  // namespace spate::fuzz
