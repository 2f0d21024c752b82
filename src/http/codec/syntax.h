// The syntax of field values (RFC 9110 §5.6): tokens, quoted strings, lists, parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/codec/characters.h"

namespace spate::http {

// Returns the token at the front; it may be empty.
inline std::string_view token_at(std::string_view text) {
  const char* end = skip(text.data(), text.data() + text.size(), kToken);
  return text.substr(0, static_cast<std::size_t>(end - text.data()));
}

// Returns whether a text is a protocol of Upgrade: a token, optionally with "/" and a version,
// which is another token (RFC 9110 §7.8).
bool is_protocol(std::string_view text);

// Returns whether a text has a control other than the tab, which no field value may have.
inline bool has_control(std::string_view text) { return !is_field_value(text); }

// Removes and returns the element at the front of a list, up to a separator outside of quoted
// strings; trimmed. It may be empty, which list parsers skip.
std::string_view take_element(std::string_view& list, char separator);

// Returns the size of the quoted string at the front, with its quotes; npos if it does not end.
std::size_t size_of_quoted(std::string_view text);
// Returns the text of a quoted string, without quotes and backslashes. An unquoted text is returned
// unchanged. The result is in `text` or in `room`, which must be as large as the text.
std::string_view unquote(std::string_view text, char* room);

// A parameter, name=value. The value is a token, or a quoted string with its quotes.
struct Parameter {
  std::string_view name;
  std::string_view value;
};
// Removes the parameter at the front of "; name=value; ...". nullopt at the end, or if it is
// invalid: then the text is not empty.
std::optional<Parameter> take_parameter(std::string_view& text);

// Parses a weight in thousandths, 0 ... 1000 (RFC 9110 §12.4.2): "0.8" is 800.
std::optional<int> parse_weight(std::string_view text);

// Parses a decimal number, digits only. With `saturates`, a number beyond 64 bits is the greatest
// one.
enum class Overflow : std::uint8_t { is_refused, saturates };
std::optional<std::uint64_t> parse_number(std::string_view text, Overflow overflow);

}  // namespace spate::http
