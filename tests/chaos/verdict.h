// Verdict: reports a promise that does not hold, unless it is left out for now.
#pragma once

#include <cstdio>
#include <string_view>
#include <system_error>

namespace spate::chaos {

// Called with the short name of the broken promise, and a description. Must not return.
using OnFailure = void (*)(const char* promise, const char* how);
void set_on_failure(OnFailure on_failure);

[[noreturn]] void fail(const char* promise, const char* how);

// Returns whether a run leaves out an operation, "operation@context", or a promise: those that
// SPATE_CHAOS_WITHOUT names, separated by commas, and those that do not hold yet.
bool is_left_out(std::string_view name);

// Returns whether it is the error of the system with this number.
inline bool is_system(std::error_code error, int number) {
  return error == std::error_code(number, std::system_category());
}

// Fails unless `holds`. Formats the message only then.
template <class... Values>
void check(bool holds, const char* promise, const char* format, Values... values) {
  if (holds || is_left_out(promise)) return;
  char how[512];
  if constexpr (sizeof...(values) == 0) {
    std::snprintf(how, sizeof(how), "%s", format);
  } else {
    std::snprintf(how, sizeof(how), format, values...);
  }
  fail(promise, how);
}

}  // namespace spate::chaos
