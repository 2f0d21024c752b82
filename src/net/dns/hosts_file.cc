#include "net/dns/hosts_file.h"

#include <algorithm>

#include "net/dns/words.h"

namespace spate {

namespace {

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
    const Result<Address> address = Address::ip(host, port);
    if (address && std::ranges::find(found, *address) == found.end()) found.push_back(*address);
  }
  return found;
}

}  // namespace spate
