// Ranges of bytes: Range, as a server takes it, and Content-Range (RFC 9110 §14). Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// From the first to the last byte, both included, as fields carry it: at least one byte.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  std::uint64_t size() const { return last - first + 1; }
  bool operator==(const ByteRange&) const = default;
};

// What a Range asks of a representation whose size is known.
class SPATE_EXPORT Ranges {
 public:
  // More of them are taken for an attack, and for none.
  static constexpr std::size_t kMost = 16;

  enum class State : std::uint8_t {
    none,           // The field is to be ignored: answer with the whole, 200.
    some,           // Answer with ranges(), 206.
    unsatisfiable,  // All are beyond the end: 416, and format_unsatisfied_range().
  };

  // The value of a Range field. `none` is: another unit than bytes, what does not follow the
  // grammar, more than kMost ranges, and ranges that are together as long as the whole or longer,
  // unless there is only one. Those that overlap or touch are merged; then they are in ascending
  // order, otherwise in that of the field. Those beyond the end are left out.
  static Ranges parse(std::string_view value, std::uint64_t size);

  State state() const { return state_; }
  // Within the representation.
  std::span<const ByteRange> ranges() const { return {ranges_.data(), count_}; }

 private:
  bool take(std::string_view spec, std::uint64_t size);
  bool overlap() const;
  void merge();

  std::array<ByteRange, kMost> ranges_;
  std::uint8_t count_ = 0;
  State state_ = State::none;
};

// Bytes that the longest Content-Range has.
inline constexpr std::size_t kMostContentRange = 70;

// "bytes 0-99/1234". Returns a view of `target`.
SPATE_EXPORT std::string_view format_content_range(ByteRange range, std::uint64_t size,
                                                   std::span<char, kMostContentRange> target);
// "bytes */1234", for an answer of 416.
SPATE_EXPORT std::string_view format_unsatisfied_range(std::uint64_t size,
                                                       std::span<char, kMostContentRange> target);

// A Content-Range as a client takes it.
struct ContentRange {
  std::optional<ByteRange> range;     // None: "*", it was not satisfied.
  std::optional<std::uint64_t> size;  // Of the whole. None: "*", it is not known.
  bool operator==(const ContentRange&) const = default;
};
// None if it is none of bytes, contradicts itself, or says nothing ("*/*").
SPATE_EXPORT std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace spate::http
