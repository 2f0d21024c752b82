#include "sim/kernel/environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace spate::sim {

namespace {

std::uint64_t number_of(const char* name, std::string_view text) {
  const std::optional<std::uint64_t> number = number_in(text);
  if (!number) refuse_environment(name, std::getenv(name), "a decimal number was expected");
  return *number;
}

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

void print_line(std::string_view line) {
  if (line.empty()) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void refuse_environment(std::string_view name, std::string_view value, std::string_view reason) {
  std::string line("spate: ");
  line.append(name).append("=").append(value).append(": ").append(reason).append("\n");
  print_line(line);
  ::_exit(kMistakenEnvironment);
}

std::optional<std::uint64_t> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return number_of(name, text);
}

Span span_in_environment(const char* name, Span usual) {
  const char* text = std::getenv(name);
  if (text == nullptr) return usual;
  const std::string_view value(text);
  const std::size_t dots = value.find("..");
  if (dots == value.npos) return {usual.first, number_of(name, value)};
  const std::uint64_t first = number_of(name, value.substr(0, dots));
  const std::uint64_t last = number_of(name, value.substr(dots + 2));
  if (last < first) refuse_environment(name, value, "the last one is before the first");
  return {first, last - first + 1};
}

std::optional<std::vector<std::uint64_t>> numbers_in_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  if (std::string_view(value) == "none") return numbers;
  for (std::string_view left(value);;) {
    const std::size_t comma = left.find(',');
    numbers.push_back(number_of(name, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace spate::sim
