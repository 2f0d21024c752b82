// HpackTable: the dynamic table of HPACK (RFC 7541 §2.3.2 and §4), of either direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http2/field_trait.h"
#include "http2/sliding.h"

namespace spate::http {

class HpackTable {
 public:
  static constexpr std::size_t kDefaultLimit = 4096;

  std::size_t limit() const { return limit_; }
  // Evicts entries as needed.
  void set_limit(std::size_t limit) {
    limit_ = limit;
    evict_down_to(limit);
  }

  // Returns the size of an entry (RFC 7541 §4.1).
  static std::size_t size_of(std::string_view name, std::string_view value) {
    return name.size() + value.size() + kOverhead;
  }
  // Adds the newest entry. An entry larger than the table only empties it. The texts must not be in
  // this table. False, with nothing changed, when memory runs out.
  bool add(std::string_view name, std::string_view value, FieldTrait trait);

  std::size_t count() const { return entries_.size(); }
  // `age` is 0 for the newest entry. The views are valid until add() or set_limit().
  std::string_view name(std::size_t age) const {
    const Entry& entry = at(age);
    return {text_of(entry), entry.name_size};
  }
  std::string_view value(std::size_t age) const {
    const Entry& entry = at(age);
    return {text_of(entry) + entry.name_size, entry.value_size};
  }
  FieldTrait trait(std::size_t age) const { return at(age).trait; }

 private:
  static constexpr std::size_t kOverhead = 32;

  struct Entry {
    std::uint32_t at = 0;  // The position among all bytes that were ever added, modulo 2^32.
    std::uint32_t name_size = 0;
    std::uint32_t value_size = 0;
    FieldTrait trait{};
  };

  const Entry& at(std::size_t age) const { return entries_[entries_.size() - 1 - age]; }
  const char* text_of(const Entry& entry) const { return text_.begin() + (entry.at - dropped_); }
  void evict_down_to(std::size_t size);

  Sliding<Entry> entries_;     // The oldest first, and so are their texts.
  Sliding<char> text_;         // Of each entry, the name and the value.
  std::uint32_t dropped_ = 0;  // Bytes of evicted entries, modulo 2^32.
  std::size_t size_ = 0;
  std::size_t limit_ = kDefaultLimit;
};

}  // namespace spate::http
