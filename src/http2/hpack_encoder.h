// HpackEncoder: encodes header blocks (RFC 7541).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/array.h"
#include "http/codec/http2_session.h"
#include "http2/hpack_table.h"

namespace spate::http {

class HpackEncoder {
 public:
  // Takes the peer's SETTINGS_HEADER_TABLE_SIZE. This side uses no larger table than the default.
  void set_limit(std::size_t limit);

  // Appends a block, with names in lower case (RFC 9113 §8.2). False when memory runs out: nothing
  // more can be encoded then.
  bool encode(std::span<const Http2Field> fields, Array<char>& block);

 private:
  static constexpr std::size_t kSlots = 64;
  using Slots = std::array<std::uint32_t, kSlots>;

  // Returns the index of the entry that a slot remembers, if it still exists and `is_wanted`.
  template <class IsWanted>
  std::size_t find(const Slots& slots, std::uint32_t hash, IsWanted is_wanted) const;
  std::string_view in_lower_case(std::string_view name);
  char* encode_field(const Http2Field& field, char* at);
  char* write_limit(char* at);
  bool remember(const Http2Field& field, std::uint32_t name_hash, std::uint32_t field_hash);

  HpackTable table_;
  Array<char> name_;         // In lower case.
  std::uint32_t added_ = 0;  // The number of entries ever added, which is the newest one's number.
  // The number of the newest entry of each hash; one that a later entry displaced is not found.
  Slots fields_{};
  Slots names_{};
  std::size_t least_limit_ = HpackTable::kDefaultLimit;  // Since the last block.
  bool has_new_limit_ = false;
};

}  // namespace spate::http
