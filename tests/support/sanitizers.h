// Whether a sanitizer is active: tests then do fewer repetitions, and do not count memory.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPATE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPATE_TEST_SANITIZED 1
#endif
#endif

// ThreadSanitizer releases its per-thread data before the last destructors of thread-specific keys
// run.
#if defined(__SANITIZE_THREAD__)
#define SPATE_TEST_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPATE_TEST_THREAD_SANITIZED 1
#endif
#endif

// Only the address sanitizer detects leaks.
#if defined(__SANITIZE_ADDRESS__)
#define SPATE_TEST_FINDS_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPATE_TEST_FINDS_LEAKS 1
#endif
#endif

namespace spate::testing {

#ifdef SPATE_TEST_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace spate::testing
