// Reads environment variables. An invalid value ends the program, with a line on stderr that
// describes valid ones: a test that silently runs something else than requested is worse than none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spate::sim {

std::optional<std::uint64_t> number_in_environment(const char* name);
struct Span {
  std::uint64_t first;
  std::uint64_t count;
};
// Parses "20", counted from the usual first one, or "5..24".
Span span_in_environment(const char* name, Span usual);
// Parses "3,17", in any order, or "none"; returns ascending numbers.
std::optional<std::vector<std::uint64_t>> numbers_in_environment(const char* name);

std::optional<std::uint64_t> number_in(std::string_view text);
// Prints a line on stderr, unless it is empty.
void print_line(std::string_view line);
// The exit status for invalid values.
inline constexpr int kMistakenEnvironment = 2;
// Ends the program, with "spate: NAME=VALUE: reason" on stderr.
[[noreturn]] void refuse_environment(std::string_view name, std::string_view value,
                                     std::string_view reason);

}  // namespace spate::sim
