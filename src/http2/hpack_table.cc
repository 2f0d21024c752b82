#include "http2/hpack_table.h"

namespace spate::http {

bool HpackTable::add(std::string_view name, std::string_view value, FieldTrait trait) {
  const std::size_t size = size_of(name, value);
  if (size > limit_) return evict_down_to(0), true;
  if (!entries_.reserve(1) || !text_.reserve(name.size() + value.size())) return false;
  evict_down_to(limit_ - size);
  const Entry entry = {.at = dropped_ + static_cast<std::uint32_t>(text_.size()),
                       .name_size = static_cast<std::uint32_t>(name.size()),
                       .value_size = static_cast<std::uint32_t>(value.size()),
                       .trait = trait};
  text_.append_reserved(name.data(), name.size());
  text_.append_reserved(value.data(), value.size());
  entries_.append_reserved(&entry, 1);
  size_ += size;
  return true;
}

void HpackTable::evict_down_to(std::size_t size) {
  while (size_ > size) {
    const Entry& oldest = entries_[0];
    const std::size_t bytes = oldest.name_size + oldest.value_size;
    text_.drop(bytes);
    dropped_ += static_cast<std::uint32_t>(bytes);
    size_ -= bytes + kOverhead;
    entries_.drop(1);
  }
}

}  // namespace spate::http
