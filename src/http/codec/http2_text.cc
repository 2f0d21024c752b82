#include "http/codec/http2_text.h"

#include <algorithm>

namespace spate::http {

namespace {

// Bytes per field besides name and value, as in HTTP/1: ": " and CR LF.
constexpr std::size_t kOverhead = 4;

}  // namespace

void Http2Text::clear() {
  text_.clear();
  count_ = 0;
  known_ = repeated_ = 0;
}

bool Http2Text::has_room(std::size_t size, const HeadLimits& limits, std::size_t more) const {
  return text_.size() + more + size + kOverhead <= limits.head;
}

Http2Text::Part Http2Text::put(std::string_view text) {
  const Part part = {text_.size(), text.size()};
  text_.append(text);
  return part;
}

bool Http2Text::add(std::string_view name, std::string_view value, const HeadLimits& limits,
                    std::span<FieldEntry> entries) {
  if (count_ == std::min(limits.fields, entries.size())) return false;
  const FieldId id = field_id_of(name);
  const Part name_part = put(name);
  const Part value_part = put(value);
  const auto narrow = [](std::size_t number) { return static_cast<std::uint16_t>(number); };
  entries[count_++] = {narrow(name_part.at), narrow(name_part.size), narrow(value_part.at),
                       narrow(value_part.size), id};
  const std::uint64_t bit = id == FieldId::other ? 0 : bit_of(id);
  repeated_ |= known_ & bit;
  known_ |= bit;
  return true;
}

}  // namespace spate::http
