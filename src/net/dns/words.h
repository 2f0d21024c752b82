// Splits configuration files into lines and words.
#pragma once

#include <algorithm>
#include <string_view>

namespace spate {

// Removes and returns the text up to the first of `ends`, which is removed as well.
inline std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::string_view taken = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

// Removes and returns the next word of a line; empty at its end.
inline std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return take_until(line, kBlanks);
}

}  // namespace spate
