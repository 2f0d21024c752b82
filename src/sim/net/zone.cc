#include "sim/net/zone.h"

#include <algorithm>

namespace spate::sim {

std::string Zone::key(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

NameAnswer Zone::find(std::string_view name) const {
  const auto found = answers_.find(key(name));
  return found == answers_.end() ? NameAnswer{.error = NameError::no_such_host} : found->second;
}

}  // namespace spate::sim
