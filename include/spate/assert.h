// SPATE_ASSERT: the caller's mistake, and nothing else.
//
// What the world does wrong is returned as an error; what the caller does wrong (a watcher re-aimed
// while it is active, a loop used from a second thread while it runs) ends here: a line on stderr
// says which function was called against which rule, and what to do instead; then the program
// traps. On in debug builds and, with SPATE_HARDENED, in every build.
#pragma once

#include <source_location>

#include "spate/export.h"

namespace spate {

// Says so, and traps. `advice` may be nullptr.
[[noreturn, gnu::cold]] SPATE_EXPORT void rule_broken(std::source_location where, const char* rule,
                                                      const char* advice = nullptr) noexcept;

// The advice for the commonest of all mistakes.
inline constexpr const char* kWrongThread =
    "another thread is running this loop, and until it has returned from run() this one may call "
    "only post(), wake() and Async::send(): post() a task that does it";

}  // namespace spate

// SPATE_ASSERT(condition), or SPATE_ASSERT(condition, advice). With _IN, the function to be named
// is not this one but `where`.
#if defined(SPATE_HARDENED) || !defined(NDEBUG)
#define SPATE_ASSERT_IN(where, condition, ...) \
  ((condition) ? static_cast<void>(0)          \
               : ::spate::rule_broken(where, #condition __VA_OPT__(, ) __VA_ARGS__))
#else
#define SPATE_ASSERT_IN(where, condition, ...) static_cast<void>(0)
#endif
#define SPATE_ASSERT(condition, ...) \
  SPATE_ASSERT_IN(std::source_location::current(), condition __VA_OPT__(, ) __VA_ARGS__)
