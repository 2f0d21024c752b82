#include "net/hosts_file.h"

#include <algorithm>

namespace spate {

namespace {

// Takes the text up to the first of `ends` off the front, and what ended it.
std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::string_view taken = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

// The next word of a line; empty at its end.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return take_until(line, kBlanks);
}

bool names(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    if (is_same_host(take_word(line), name)) return true;
  }
  return false;
}

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool is_same_host(std::string_view a, std::string_view b) {
  if (a.ends_with('.')) a.remove_suffix(1);
  if (b.ends_with('.')) b.remove_suffix(1);
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

std::vector<Address> addresses_in_hosts(std::string_view text, std::string_view name,
                                        std::uint16_t port) {
  std::vector<Address> found;
  while (!text.empty()) {
    std::string_view whole = take_until(text, "\n");
    std::string_view line = take_until(whole, "#");
    const std::string_view host = take_word(line);
    if (!names(line, name)) continue;
    const Address::Parsed address = Address::ip(host, port);
    if (address && std::ranges::find(found, *address) == found.end()) found.push_back(*address);
  }
  return found;
}

}  // namespace spate
