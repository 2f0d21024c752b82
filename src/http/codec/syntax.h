// What the values of fields are made of (RFC 9110 §5.6): tokens, quoted strings, lists, parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spate::http {

constexpr char to_lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_same_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (to_lower_ascii(a[i]) != to_lower_ascii(b[i])) return false;
  }
  return true;
}

// Without blanks and tabs around it.
constexpr std::string_view trim_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return text.substr(0, 0);
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

constexpr bool is_token_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
// The token at the front; it may be empty.
constexpr std::string_view token_at(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && is_token_byte(text[size])) ++size;
  return text.substr(0, size);
}
constexpr bool is_whole_token(std::string_view text) {
  return !text.empty() && token_at(text).size() == text.size();
}

// A control other than the tab: no value of a field may have one.
constexpr bool is_control(char c) {
  return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
}
constexpr bool has_control(std::string_view text) {
  for (const char c : text) {
    if (is_control(c)) return true;
  }
  return false;
}

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
