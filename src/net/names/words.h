// Text by lines and words: what configuration files are made of.
#pragma once

#include <algorithm>
#include <string_view>

namespace spate {

// Takes the text up to the first of `ends` off the front, and what ended it.
inline std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::string_view taken = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

// The next word of a line; empty at its end.
inline std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return take_until(line, kBlanks);
}

}  // namespace spate
