// What the values of fields are made of (RFC 9110 §5.6): tokens, quoted strings, lists, parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/codec/characters.h"

namespace spate::http {

// The token at the front; it may be empty.
inline std::string_view token_at(std::string_view text) {
  const char* end = skip(text.data(), text.data() + text.size(), kToken);
  return text.substr(0, static_cast<std::size_t>(end - text.data()));
}

// What Upgrade names: a token, and perhaps "/" with a version, which is another (RFC 9110 §7.8).
bool is_protocol(std::string_view text);

// One that is not the tab: no value of a field may have it.
inline bool has_control(std::string_view text) { return !consists_of(text, kValue); }

// Removes and returns the element at the front of a list, up to a separator that is not within a
// quoted string; trimmed. It may be empty, which those who read lists pass over.
std::string_view take_element(std::string_view& list, char separator);

// The size of the quoted string at the front, with its quotes; npos if it does not end.
std::size_t size_of_quoted(std::string_view text);
// What a quoted string says, without quotes and backslashes. Text that is in no quotes is itself.
// The result is text or in `room`, which must have as many bytes as the text.
std::string_view unquote(std::string_view text, char* room);

// A parameter, name=value: the value is a token or a quoted string with its quotes.
struct Parameter {
  std::string_view name;
  std::string_view value;
};
// Removes the parameter at the front of "; name=value; ...". None at the end, and where it is bad:
// then the text is not empty.
std::optional<Parameter> take_parameter(std::string_view& text);

// A weight in thousandths, 0 ... 1000 (RFC 9110 §12.4.2): "0.8" is 800.
std::optional<int> parse_weight(std::string_view text);

// A decimal number, digits only. Numbers beyond 64 bits are the greatest one, when `saturates`.
enum class Overflow : std::uint8_t { is_refused, saturates };
std::optional<std::uint64_t> parse_number(std::string_view text, Overflow overflow);

}  // namespace spate::http
