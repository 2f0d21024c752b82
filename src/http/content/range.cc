#include "spate/http/range.h"

#include <algorithm>
#include <charconv>

#include "http/codec/syntax.h"

namespace spate::http {

namespace {

constexpr std::string_view kBytesUnit = "bytes";

char* put_text(char* at, std::string_view text) { return std::ranges::copy(text, at).out; }
char* put_number(char* at, std::uint64_t number) { return std::to_chars(at, at + 20, number).ptr; }

bool touches(ByteRange a, ByteRange b) {  // `a` does not begin after `b`.
  return b.first <= a.last || b.first - a.last == 1;
}

std::optional<ByteRange> parse_byte_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {};
  const auto first = parse_number(text.substr(0, dash), Overflow::is_refused);
  const auto last = parse_number(text.substr(dash + 1), Overflow::is_refused);
  if (!first || !last || *last < *first || *last == UINT64_MAX) return {};
  return ByteRange{*first, *last};
}

}  // namespace

// Adds "first-last", "first-" or "-suffix". False if it is invalid, or one too many.
bool Ranges::take(std::string_view spec, std::uint64_t size) {
  const std::size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return false;
  const std::string_view behind = spec.substr(dash + 1);
  const auto first = parse_number(spec.substr(0, dash), Overflow::saturates);
  const auto last = parse_number(behind, Overflow::saturates);
  if ((!first && dash > 0) || (!last && !behind.empty()) || (!first && !last)) return false;
  if (first && last && *last < *first) return false;
  const std::uint64_t suffix = first ? 0 : std::min(*last, size);
  const bool is_beyond = first ? *first >= size : suffix == 0;
  if (is_beyond) return true;
  if (count_ == kMost) return false;
  const std::uint64_t end = size - 1;
  ranges_[count_++] =
      first ? ByteRange{*first, last ? std::min(*last, end) : end} : ByteRange{size - suffix, end};
  return true;
}

bool Ranges::overlap() const {
  for (std::size_t i = 1; i < count_; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool is_after = ranges_[i].first >= ranges_[j].first;
      if (is_after ? touches(ranges_[j], ranges_[i]) : touches(ranges_[i], ranges_[j])) return true;
    }
  }
  return false;
}

void Ranges::merge() {
  std::sort(ranges_.begin(), ranges_.begin() + count_,
            [](ByteRange a, ByteRange b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < count_; ++i) {
    if (touches(ranges_[kept], ranges_[i]))
      ranges_[kept].last = std::max(ranges_[kept].last, ranges_[i].last);
    else
      ranges_[++kept] = ranges_[i];
  }
  count_ = static_cast<std::uint8_t>(kept + 1);
}

Ranges Ranges::parse(std::string_view value, std::uint64_t size) {
  const std::string_view unit = value.substr(0, kBytesUnit.size());
  if (!equal_ignoring_case(unit, kBytesUnit)) return {};
  value.remove_prefix(unit.size());
  if (!value.starts_with('=')) return {};
  value.remove_prefix(1);
  Ranges ranges;
  std::size_t count = 0;
  while (!value.empty()) {
    const std::string_view spec = take_element(value, ',');
    if (spec.empty()) continue;
    if (++count > kMost || !ranges.take(spec, size)) return {};
  }
  if (count == 0 || size == 0) return {};
  ranges.state_ = ranges.count_ == 0 ? State::unsatisfiable : State::some;
  std::uint64_t sum = 0;
  for (const ByteRange& range : ranges.ranges()) {
    if (ranges.count_ > 1 && range.size() >= size - sum) return {};
    sum += range.size();
  }
  if (ranges.overlap()) ranges.merge();
  return ranges;
}

std::string_view format_content_range(ByteRange range, std::uint64_t size,
                                      std::span<char, kMostContentRange> target) {
  char* at = put_number(put_text(target.data(), "bytes "), range.first);
  at = put_number(put_text(at, "-"), range.last);
  at = put_number(put_text(at, "/"), size);
  return {target.data(), at};
}

std::string_view format_unsatisfied_range(std::uint64_t size,
                                          std::span<char, kMostContentRange> target) {
  return {target.data(), put_number(put_text(target.data(), "bytes */"), size)};
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  const std::string_view unit = value.substr(0, kBytesUnit.size());
  if (!equal_ignoring_case(unit, kBytesUnit)) return {};
  value.remove_prefix(unit.size());
  const std::size_t slash = value.find('/');
  if (!value.starts_with(' ') || slash == std::string_view::npos) return {};
  const std::string_view range = value.substr(1, slash - 1);
  const std::string_view size = value.substr(slash + 1);
  ContentRange parsed;
  if (size != "*") {
    parsed.size = parse_number(size, Overflow::is_refused);
    if (!parsed.size) return {};
  }
  if (range != "*") {
    parsed.range = parse_byte_range(range);
    if (!parsed.range || (parsed.size && parsed.range->last >= *parsed.size)) return {};
  }
  if (!parsed.range && !parsed.size) return {};
  return parsed;
}

}  // namespace spate::http
