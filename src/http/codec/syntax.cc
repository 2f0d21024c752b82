#include "http/codec/syntax.h"

#include <algorithm>

namespace spate::http {

namespace {

// Returns the position of the next separator outside of quoted strings; the size if none.
std::size_t find_separator(std::string_view text, char separator) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != separator) {
    const std::size_t size = text[at] == '"' ? size_of_quoted(text.substr(at)) : 1;
    if (size == std::string_view::npos) return text.size();
    at += size;
  }
  return at;
}

}  // namespace

bool is_protocol(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_token(text);
  return is_token(text.substr(0, slash)) && is_token(text.substr(slash + 1));
}

std::string_view take_element(std::string_view& list, char separator) {
  const std::size_t size = find_separator(list, separator);
  const std::string_view element = list.substr(0, size);
  list.remove_prefix(std::min(size + 1, list.size()));
  return trimmed(element);
}

std::size_t size_of_quoted(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return std::string_view::npos;
}

std::string_view unquote(std::string_view text, char* room) {
  if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return text;
  text = text.substr(1, text.size() - 2);
  if (text.find('\\') == std::string_view::npos) return text;
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    room[size++] = text[i];
  }
  return {room, size};
}

std::optional<Parameter> take_parameter(std::string_view& text) {
  std::string_view rest = trimmed(text);
  while (rest.starts_with(';')) {
    rest = trimmed(rest.substr(1));
    // Empty parameters are allowed (RFC 9110 §5.6.6).
    if (rest.empty() || rest.starts_with(';')) continue;
    const std::string_view name = token_at(rest);
    if (name.empty() || !rest.substr(name.size()).starts_with('=')) return {};
    rest.remove_prefix(name.size() + 1);
    const std::size_t size = rest.starts_with('"') ? size_of_quoted(rest) : token_at(rest).size();
    if (size == 0 || size == std::string_view::npos) return {};
    text = trimmed(rest.substr(size));
    return Parameter{name, rest.substr(0, size)};
  }
  text = rest;
  return {};
}

std::optional<int> parse_weight(std::string_view text) {
  if (text.empty() || text.size() > 5 || text[0] < '0' || text[0] > '1') return {};
  if (text.size() > 1 && text[1] != '.') return {};
  int weight = (text[0] - '0') * 1000;
  int unit = 100;
  for (std::size_t i = 2; i < text.size(); ++i, unit /= 10) {
    if (text[i] < '0' || text[i] > '9') return {};
    weight += (text[i] - '0') * unit;
  }
  if (weight > 1000) return {};
  return weight;
}

std::optional<std::uint64_t> parse_number(std::string_view text, Overflow overflow) {
  if (text.empty()) return {};
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return {};
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (number > (UINT64_MAX - digit) / 10) {
      if (overflow == Overflow::is_refused) return {};
      number = UINT64_MAX;
    } else {
      number = number * 10 + digit;
    }
  }
  return number;
}

}  // namespace spate::http
