#include "http2/field_trait.h"

#include <array>
#include <cstddef>

#include "http/codec/characters.h"

namespace spate::http {

namespace {

enum Class : std::uint8_t { kNameByte = 1, kAuthorityByte = 2, kPathByte = 4, kSchemeByte = 8 };

consteval std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const bool is_lower = c >= 'a' && c <= 'z';
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_number = c >= '0' && c <= '9';
    const auto is_one_of = [c](std::string_view signs) {
      return c < 0x80 && signs.contains(static_cast<char>(c));
    };
    const bool is_alphanumeric = is_lower || is_upper || is_number;
    const bool is_name = is_lower || is_number || is_one_of("!#$%&'*+-.^_`|~");
    const bool is_authority = is_alphanumeric || is_one_of("-._~!$&'()*+,;=%:@[]");
    const bool is_path = (c > 0x20 && c < 0x7f) || c >= 0x80;
    const bool is_scheme = is_alphanumeric || is_one_of("+-.");
    table[static_cast<std::size_t>(c)] =
        static_cast<std::uint8_t>((is_name ? kNameByte : 0) | (is_authority ? kAuthorityByte : 0) |
                                  (is_path ? kPathByte : 0) | (is_scheme ? kSchemeByte : 0));
  }
  return table;
}
constexpr std::array<std::uint8_t, 256> kClasses = make_classes();

bool consists_of(std::string_view text, Class wanted) {
  for (const char c : text)
    if ((kClasses[static_cast<unsigned char>(c)] & wanted) == 0) return false;
  return true;
}

// No control character, and no blank at an end (RFC 9113 §8.2.1).
bool is_plain_value(std::string_view value) {
  return value.empty() ||
         (!is_blank(value.front()) && !is_blank(value.back()) && is_field_value(value));
}

bool is_scheme(std::string_view value) {
  return !value.empty() && !is_digit(value.front()) && consists_of(value, kSchemeByte) &&
         !std::string_view("+-.").contains(value.front());
}

bool is_valid_value(FieldKind kind, std::string_view value) {
  switch (kind) {
    case FieldKind::method:
      return is_token(value);
    case FieldKind::scheme:
      return is_scheme(value);
    case FieldKind::authority:
    case FieldKind::host:
      return consists_of(value, kAuthorityByte);
    case FieldKind::path:
      return consists_of(value, kPathByte);
    default:
      return is_plain_value(value);
  }
}

}  // namespace

FieldTrait trait_of(std::string_view name, std::string_view value) {
  const FieldKind kind = field_kind_of(name);
  const bool is_named = kind != FieldKind::plain || (!name.empty() && consists_of(name, kNameByte));
  return {kind, is_named && is_valid_value(kind, value)};
}

}  // namespace spate::http
