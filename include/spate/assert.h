// SPATE_ASSERT: reports mistakes of the caller.
//
// Failures of the system are returned as errors. A mistake of the caller (for example setting the
// descriptor of an active watcher, or using a running loop from another thread) prints a line to
// stderr, with the function, the rule and what to do instead, and traps. Assertions are enabled in
// debug builds and, with SPATE_HARDENED, in every build.
#pragma once

#include <source_location>

#include "spate/export.h"

namespace spate {

// Prints and traps. `advice` may be nullptr.
[[noreturn, gnu::cold]] SPATE_EXPORT void rule_broken(std::source_location where, const char* rule,
                                                      const char* advice = nullptr) noexcept;

// The advice for the most common mistake: a call from the wrong thread.
inline constexpr const char* kWrongThread =
    "another thread is running this loop, and until it has returned from run() this one may call "
    "only post(), wake() and Async::send(): post() a task that does it";

}  // namespace spate

// SPATE_ASSERT(condition) or SPATE_ASSERT(condition, advice). SPATE_ASSERT_IN reports `where` as
// the function.
#if defined(SPATE_HARDENED) || !defined(NDEBUG)
#define SPATE_ASSERT_IN(where, condition, ...) \
  ((condition) ? static_cast<void>(0)          \
               : ::spate::rule_broken(where, #condition __VA_OPT__(, ) __VA_ARGS__))
#else
#define SPATE_ASSERT_IN(where, condition, ...) static_cast<void>(0)
#endif
#define SPATE_ASSERT(condition, ...) \
  SPATE_ASSERT_IN(std::source_location::current(), condition __VA_OPT__(, ) __VA_ARGS__)
