#include "http/content/json_text.h"

#include <cstdint>

#include "base/hex.h"

namespace spate::http {

namespace {

bool is_rest_byte(std::string_view text, std::size_t at, unsigned low, unsigned high) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= low && byte <= high;
}

// Returns the size of the UTF-8 character at the front, by the table of RFC 3629 §4; zero if
// invalid.
std::size_t size_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xc2   ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (size == 0) return 0;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (!is_rest_byte(text, 1, low, high)) return 0;
  for (std::size_t at = 2; at < size; ++at) {
    if (!is_rest_byte(text, at, 0x80, 0xbf)) return 0;
  }
  return size;
}

void append_json_byte(std::string& json, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\')
    json.append({'\\', c});
  else if (c == '\n')
    json += "\\n";
  else if (byte < 0x20 || byte == 0x7f || c == '<')
    append_hex(json += "\\u00", byte);
  else
    json += c;
}

}  // namespace

void append_json_text(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const std::size_t size = size_of_character(text);
    if (size == 1)
      append_json_byte(json, text.front());
    else
      json += size == 0 ? std::string_view("\\ufffd") : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  json += '"';
}

}  // namespace spate::http
