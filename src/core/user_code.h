// Invokes user callbacks. They must not throw: the state between a callback and run() could not be
// repaired. So an exception ends the program where it leaves the callback, in every build, after a
// line on stderr that names the callback. Handlers of HTTP requests may throw: guard_user() catches
// where the exchange can still be ended.
//
// The only code that handles exceptions; zero cost if none is thrown.
#pragma once

#include <string_view>
#include <utility>

#include "spate/events.h"
#include "spate/export.h"

namespace spate {

// Returns the kind of a watcher by its events: "Timer"; null-terminated.
std::string_view kind_of(Events events) noexcept;

// Prints the line, and terminates; the program's terminate handler then describes the exception.
// `whose` is a text such as "StreamHandler", or the events of the watcher.
[[noreturn, gnu::cold]] SPATE_EXPORT void exception_left(const char* whose) noexcept;
[[noreturn, gnu::cold]] void exception_left(Events whose) noexcept;

// Calls `function`, which calls user code, and returns its result.
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

// Calls `function`, which calls user code. If an exception leaves it, calls `on_exception()` while
// std::current_exception() is that exception, and returns false.
template <class Function, class OnException>
[[gnu::always_inline]] inline bool guard_user(Function&& function, OnException&& on_exception) {
#ifdef __cpp_exceptions
  try {
    std::forward<Function>(function)();
  } catch (...) {
    std::forward<OnException>(on_exception)();
    return false;
  }
#else
  static_cast<void>(on_exception);
  std::forward<Function>(function)();
#endif
  return true;
}

}  // namespace spate
