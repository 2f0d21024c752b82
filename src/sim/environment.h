// What is set in the environment. What is set and cannot be understood ends the program, with a
// line on stderr that says what would be: a test that runs something else than it was told is worse
// than none.
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
// "20" from the usual first on, or "5..24".
Span span_in_environment(const char* name, Span usual);
// "3,17", in any order, or "none"; returned in ascending order.
std::optional<std::vector<std::uint64_t>> numbers_in_environment(const char* name);

std::optional<std::uint64_t> number_in(std::string_view text);
// On stderr, unless it is empty.
void print_line(std::string_view line);
// The status with which the program ends.
inline constexpr int kMistakenEnvironment = 2;
// Ends the program, with "spate: NAME=VALUE: reason" on stderr.
[[noreturn]] void refuse_environment(std::string_view name, std::string_view value,
                                     std::string_view reason);

}  // namespace spate::sim
