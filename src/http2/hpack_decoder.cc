#include "http2/hpack_decoder.h"

#include <algorithm>

#include "http2/hpack_huffman.h"
#include "http2/hpack_static.h"

namespace spate::http {

namespace {

// A name or a value in the block may be this long.
constexpr std::size_t kMostText = 65'536;

// Reads an integer behind a prefix of `bits` bits (RFC 7541 §5.1).
HpackStep take_number(const char*& at, const char* end, unsigned bits, std::size_t& number) {
  constexpr unsigned kMostShift = 28;
  if (at == end) return HpackStep::incomplete;
  const std::size_t most = (std::size_t{1} << bits) - 1;
  number = static_cast<unsigned char>(*at++) & most;
  if (number < most) return HpackStep::field;
  for (unsigned shift = 0; at != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    if (shift > kMostShift) return HpackStep::invalid;
    const std::uint64_t sum = number + (std::uint64_t{byte & 0x7fu} << shift);
    if (sum > UINT32_MAX) return HpackStep::invalid;
    number = static_cast<std::size_t>(sum);
    if ((byte & 0x80) == 0) return HpackStep::field;
  }
  return HpackStep::incomplete;
}

}  // namespace

HpackStep HpackDecoder::next(std::string_view& block, HpackField& field) {
  const char* at = block.data();
  const char* const end = at + block.size();
  const auto done = [&](HpackStep step) {
    if (step == HpackStep::field) block.remove_prefix(static_cast<std::size_t>(at - block.data()));
    return step;
  };
  while (at != end) {
    const auto first = static_cast<unsigned char>(*at);
    std::size_t number = 0;
    if (first >= 0x80) {  // An indexed field.
      may_resize_ = false;
      const HpackStep step = take_number(at, end, 7, number);
      return done(step == HpackStep::field ? take_indexed(number, field) : step);
    }
    if (first >> 5 != 1) {  // A literal.
      may_resize_ = false;
      const bool is_added = first >= 0x40;
      const HpackStep step = take_number(at, end, is_added ? 6 : 4, number);
      if (step != HpackStep::field) return step;
      const HpackStep taken = take_literal(at, end, number, field);
      if (taken == HpackStep::field && is_added &&
          !table_.add(field.name, field.value, field.trait))
        return HpackStep::no_memory;
      return done(taken);
    }
    if (!may_resize_) return HpackStep::invalid;
    const HpackStep step = take_number(at, end, 5, number);
    if (step != HpackStep::field) return step;
    if (number > HpackTable::kDefaultLimit) return HpackStep::invalid;
    table_.set_limit(number);
    block.remove_prefix(static_cast<std::size_t>(at - block.data()));
  }
  return HpackStep::end;
}

bool HpackDecoder::is_index(std::size_t index) const {
  return index != 0 && index <= kHpackStatic.size() + table_.count();
}

std::string_view HpackDecoder::name_of(std::size_t index) const {
  if (index <= kHpackStatic.size()) return kHpackStatic[index - 1].name;
  return table_.name(index - kHpackStatic.size() - 1);
}

HpackStep HpackDecoder::take_indexed(std::size_t index, HpackField& field) {
  if (!is_index(index)) return HpackStep::invalid;
  if (index <= kHpackStatic.size()) {
    const HpackPair& pair = kHpackStatic[index - 1];
    field = {pair.name, pair.value, hpack_static_trait(index)};
  } else {
    const std::size_t age = index - kHpackStatic.size() - 1;
    field = {table_.name(age), table_.value(age), table_.trait(age)};
  }
  return HpackStep::field;
}

HpackStep HpackDecoder::take_text(const char*& at, const char* end, Literal& literal) const {
  if (at == end) return HpackStep::incomplete;
  literal.is_coded = (static_cast<unsigned char>(*at) & 0x80) != 0;
  std::size_t size = 0;
  const HpackStep step = take_number(at, end, 7, size);
  if (step != HpackStep::field) return step;
  if (size > kMostText) return HpackStep::invalid;
  if (size > static_cast<std::size_t>(end - at)) return HpackStep::incomplete;
  literal.text = {at, size};
  at += size;
  return HpackStep::field;
}

// The name is copied if it is in the table, because adding the field may evict it.
HpackStep HpackDecoder::take_literal(const char*& at, const char* end, std::size_t index,
                                     HpackField& field) {
  Literal name;
  Literal value;
  if (index == 0) {
    if (const HpackStep step = take_text(at, end, name); step != HpackStep::field) return step;
  } else if (!is_index(index)) {
    return HpackStep::invalid;
  }
  if (const HpackStep step = take_text(at, end, value); step != HpackStep::field) return step;
  if (index != 0) name.text = name_of(index);
  const auto room_of = [](const Literal& each) {
    return each.is_coded ? huffman_room(each.text.size()) : each.text.size();
  };
  // One more, so that the room of empty texts exists.
  if (!scratch_.reserve(room_of(name) + room_of(value) + 1)) return HpackStep::no_memory;
  char* used = scratch_.begin();
  if (index > kHpackStatic.size()) {
    char* const copy = used;
    used = std::ranges::copy(name.text, used).out;
    name.text = {copy, name.text.size()};
  }
  for (Literal* each : {&name, &value}) {
    if (!each->is_coded) continue;
    char* const begin = used;
    used = huffman_decode(each->text, used);
    if (used == nullptr) return HpackStep::invalid;
    each->text = {begin, used};
  }
  field = {name.text, value.text, trait_of(name.text, value.text)};
  return HpackStep::field;
}

}  // namespace spate::http
