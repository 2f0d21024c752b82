// Byte ranges: parsing of Range for servers, and Content-Range (RFC 9110 §14). Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// A range from the first to the last byte, both included, as in fields: at least one byte.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  std::uint64_t size() const { return last - first + 1; }
  bool operator==(const ByteRange&) const = default;
};

// The result of applying a Range field to a representation of known size.
class SPATE_EXPORT Ranges {
 public:
  // A field with more ranges is treated as an attack, and ignored.
  static constexpr std::size_t kMost = 16;

  enum class State : std::uint8_t {
    none,           // Ignore the field: send the whole with 200.
    some,           // Send ranges() with 206.
    unsatisfiable,  // All ranges are beyond the end: send 416 with format_unsatisfied_range().
  };

  // Parses the value of a Range field. The state is `none` for a unit other than bytes, a syntax
  // error, more than kMost ranges, and several ranges that together are at least as long as the
  // whole. Overlapping or adjacent ranges are merged; then they are in ascending order, otherwise
  // in the order of the field. Ranges beyond the end are omitted.
  static Ranges parse(std::string_view value, std::uint64_t size);

  State state() const { return state_; }
  // Returns the ranges, all within the representation.
  std::span<const ByteRange> ranges() const { return {ranges_.data(), count_}; }

 private:
  bool take(std::string_view spec, std::uint64_t size);
  bool overlap() const;
  void merge();

  std::array<ByteRange, kMost> ranges_;
  std::uint8_t count_ = 0;
  State state_ = State::none;
};

// The most bytes of a Content-Range.
inline constexpr std::size_t kMostContentRange = 70;

// Formats "bytes 0-99/1234". Returns a view of `target`.
SPATE_EXPORT std::string_view format_content_range(ByteRange range, std::uint64_t size,
                                                   std::span<char, kMostContentRange> target);
// Formats "bytes */1234", for a response of 416.
SPATE_EXPORT std::string_view format_unsatisfied_range(std::uint64_t size,
                                                       std::span<char, kMostContentRange> target);

// A Content-Range received by a client.
struct ContentRange {
  std::optional<ByteRange> range;     // nullopt: "*", the range was not satisfiable.
  std::optional<std::uint64_t> size;  // The full size. nullopt: "*", it is unknown.
  bool operator==(const ContentRange&) const = default;
};
// Parses a Content-Range. Returns nullopt if the unit is not bytes, or if it is contradictory or
// empty ("*/*").
SPATE_EXPORT std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace spate::http
