// HpackDecoder: decodes header blocks (RFC 7541), field by field. A block may come in fragments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/array.h"
#include "http2/field_trait.h"
#include "http2/hpack_table.h"

namespace spate::http {

// Valid until the next call.
struct HpackField {
  std::string_view name;
  std::string_view value;
  FieldTrait trait{};
};

enum class HpackStep : std::uint8_t {
  field,
  end,         // The fragment is used up.
  incomplete,  // The rest of the fragment is a part of a field.
  invalid,     // A compression error, which ends the connection.
  no_memory,
};

class HpackDecoder {
 public:
  void begin_block() { may_resize_ = true; }
  // Takes the next field from the front of `block`. Takes nothing if the step is `incomplete`: the
  // caller repeats the call with more bytes.
  HpackStep next(std::string_view& block, HpackField& field);

  // For tests: the table's entries.
  std::size_t entries() const { return table_.count(); }

 private:
  // The parts of an entry, read from the block.
  struct Literal {
    std::string_view text;
    bool is_coded = false;
  };

  HpackStep take_indexed(std::size_t index, HpackField& field);
  HpackStep take_literal(const char*& at, const char* end, std::size_t index, HpackField& field);
  HpackStep take_text(const char*& at, const char* end, Literal& literal) const;
  bool is_index(std::size_t index) const;
  std::string_view name_of(std::size_t index) const;

  HpackTable table_;
  Array<char> scratch_;  // A name and a value.
  bool may_resize_ = true;
};

}  // namespace spate::http
