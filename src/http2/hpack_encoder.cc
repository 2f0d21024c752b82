#include "http2/hpack_encoder.h"

#include <algorithm>
#include <bit>

#include "http/codec/characters.h"
#include "http2/hpack_huffman.h"
#include "http2/hpack_static.h"

namespace spate::http {

namespace {

// The first byte of each representation, and the bits of its number (RFC 7541 §6).
struct Form {
  unsigned char first;
  unsigned bits;
};
constexpr Form kIndexed = {0x80, 7};
constexpr Form kAdded = {0x40, 6};
constexpr Form kNotAdded = {0x00, 4};
constexpr Form kNeverAdded = {0x10, 4};
constexpr Form kNewLimit = {0x20, 5};

constexpr std::size_t kMostNumber = 6;  // Bytes.
constexpr std::size_t kShortCookie = 20;

char* write_number(char* at, Form form, std::size_t number) {
  const std::size_t most = (std::size_t{1} << form.bits) - 1;
  if (number < most) {
    *at++ = static_cast<char>(form.first | number);
    return at;
  }
  *at++ = static_cast<char>(form.first | most);
  for (number -= most; number >= 0x80; number >>= 7) *at++ = static_cast<char>(number | 0x80);
  *at++ = static_cast<char>(number);
  return at;
}

char* write_text(char* at, std::string_view text) {
  const std::size_t coded = huffman_size(text);
  if (coded >= text.size())
    return std::ranges::copy(text, write_number(at, {0, 7}, text.size())).out;
  return huffman_encode(text, write_number(at, {0x80, 7}, coded));
}

// A secret that could be guessed by trying is never added, on any hop (RFC 7541 §7.1.3). Values
// that are hardly ever repeated are not added.
consteval std::array<Form, kHpackStatic.size() + 1> make_forms() {
  constexpr std::string_view kNever[] = {"authorization", "proxy-authorization"};
  constexpr std::string_view kNot[] = {":path",         "age",           "content-length",
                                       "content-range", "etag",          "if-modified-since",
                                       "if-none-match", "last-modified", "location",
                                       "set-cookie"};
  std::array<Form, kHpackStatic.size() + 1> forms;
  forms.fill(kAdded);
  for (std::size_t i = 1; i < forms.size(); ++i) {
    const std::string_view name = kHpackStatic[i - 1].name;
    if (std::ranges::find(kNever, name) != std::end(kNever)) forms[i] = kNeverAdded;
    if (std::ranges::find(kNot, name) != std::end(kNot)) forms[i] = kNotAdded;
  }
  return forms;
}
// By the index of the name in the static table; 0: it is not there.
constexpr std::array<Form, kHpackStatic.size() + 1> kForms = make_forms();

Form form_of(std::size_t static_name, std::string_view value) {
  constexpr std::size_t kCookie = 32;
  static_assert(kHpackStatic[kCookie - 1].name == "cookie");
  const bool is_short = static_name == kCookie && value.size() < kShortCookie;
  return is_short ? kNeverAdded : kForms[static_name];
}

bool has_upper(std::string_view name) {
  return std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::size_t room_for(const Http2Field& field) {
  return 3 * kMostNumber + field.name.size() + field.value.size();
}

}  // namespace

void HpackEncoder::set_limit(std::size_t limit) {
  limit = std::min(limit, HpackTable::kDefaultLimit);
  if (limit == table_.limit()) return;
  least_limit_ = has_new_limit_ ? std::min(least_limit_, limit) : limit;
  has_new_limit_ = true;
  table_.set_limit(limit);
}

bool HpackEncoder::encode(std::span<const Http2Field> fields, Array<char>& block) {
  std::size_t room = 2 * kMostNumber;
  std::size_t longest = 0;
  for (const Http2Field& field : fields) {
    room += room_for(field);
    longest = std::max(longest, field.name.size());
  }
  if (!block.reserve(block.size() + room) || !name_.reserve(longest)) return false;
  char* const begin = block.end();
  char* at = has_new_limit_ ? write_limit(begin) : begin;
  for (const Http2Field& field : fields) at = encode_field(field, at);
  block.grow_reserved(static_cast<std::size_t>(at - begin));
  return true;
}

std::string_view HpackEncoder::in_lower_case(std::string_view name) {
  std::ranges::transform(name, name_.begin(), lower);
  return {name_.begin(), name.size()};
}

// A limit that was lower meanwhile is announced, too, because the peer evicted entries (RFC 7541
// §4.2).
char* HpackEncoder::write_limit(char* at) {
  has_new_limit_ = false;
  if (least_limit_ < table_.limit()) at = write_number(at, kNewLimit, least_limit_);
  return write_number(at, kNewLimit, table_.limit());
}

template <class IsWanted>
std::size_t HpackEncoder::find(const Slots& slots, std::uint32_t hash, IsWanted is_wanted) const {
  const std::size_t age = added_ - slots[hash % kSlots];
  if (age >= table_.count() || !is_wanted(age)) return 0;
  return kHpackStatic.size() + 1 + age;
}

char* HpackEncoder::encode_field(const Http2Field& field, char* at) {
  const std::uint32_t name_hash = hpack_hash(field.name);
  std::size_t name = hpack_static_name(field.name, name_hash);
  if (name != 0) {
    const std::uint8_t whole = hpack_static_field(static_cast<std::uint8_t>(name), field.value);
    if (whole != 0) return write_number(at, kIndexed, whole);
  }
  // A name of the static table is in lower case.
  if (name == 0 && has_upper(field.name))
    return encode_field({in_lower_case(field.name), field.value}, at);
  Form form = form_of(name, field.value);
  const std::uint32_t field_hash = name_hash * 31 + hpack_hash(field.value);
  if (form.first == kAdded.first) {
    const std::size_t whole = find(fields_, field_hash, [&](std::size_t age) {
      return table_.value(age) == field.value && table_.name(age) == field.name;
    });
    if (whole != 0) return write_number(at, kIndexed, whole);
  }
  if (name == 0)
    name = find(names_, name_hash, [&](std::size_t age) { return table_.name(age) == field.name; });
  if (form.first == kAdded.first && !remember(field, name_hash, field_hash)) form = kNotAdded;
  at = write_number(at, form, name);
  if (name == 0) at = write_text(at, field.name);
  return write_text(at, field.value);
}

// False if the field is too large for the table, or when memory runs out. A field that fills most
// of the table is not worth the entries that it evicts.
bool HpackEncoder::remember(const Http2Field& field, std::uint32_t name_hash,
                            std::uint32_t field_hash) {
  if (HpackTable::size_of(field.name, field.value) > table_.limit() / 2) return false;
  if (!table_.add(field.name, field.value, {})) return false;
  fields_[field_hash % kSlots] = names_[name_hash % kSlots] = ++added_;
  return true;
}

}  // namespace spate::http
