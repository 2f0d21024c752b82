// Calling what is the user's. It must not throw: between it and run() lies state that nobody could
// put right, so an exception ends the program where it left the callback, in every build, and one
// line on stderr says whose callback that was.
//
// This is the only place that knows exceptions. On the way that does not throw it costs nothing.
#pragma once

#include <string_view>
#include <utility>

#include "spate/events.h"

namespace spate {

// Whose callback is called with such events: "Timer"; null-terminated.
std::string_view kind_of(Events events) noexcept;

// Says so, and terminates; the program's own handler then says what was thrown. `whose` is a
// "StreamHandler", or the events that a watcher was called with.
[[noreturn, gnu::cold]] void exception_left(const char* whose) noexcept;
[[noreturn, gnu::cold]] void exception_left(Events whose) noexcept;

// Returns what `function` returns, which calls code of the user's.
template <class Whose, class Function>
[[gnu::always_inline]] inline decltype(auto) call_user(Whose whose, Function&& function) noexcept {
#ifdef __cpp_exceptions
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    exception_left(whose);
  }
#else
  static_cast<void>(whose);
  return std::forward<Function>(function)();
#endif
}

}  // namespace spate
