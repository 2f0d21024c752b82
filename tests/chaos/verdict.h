// Verdict: what happens when a promise does not hold, and which promises are not looked at for now.
#pragma once

#include <cstdio>
#include <string_view>

namespace spate::chaos {

// Called with the promise that was broken, by its short name, and how. Must not return.
using OnFailure = void (*)(const char* promise, const char* how);
void set_on_failure(OnFailure on_failure);

[[noreturn]] void fail(const char* promise, const char* how);

// Operations, "operation@context", and promises that a run is to leave out: those that
// SPATE_CHAOS_WITHOUT names (with commas between), and those that are known not to hold yet.
bool is_left_out(std::string_view name);

// What must hold. The words are made only if it does not.
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
