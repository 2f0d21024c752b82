// Whether a sanitizer watches: tests then do less of the same, and leave counting memory to it.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPATE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPATE_TEST_SANITIZED 1
#endif
#endif

// What it needs of a thread is gone before the last functions of the thread's keys are called.
#if defined(__SANITIZE_THREAD__)
#define SPATE_TEST_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPATE_TEST_THREAD_SANITIZED 1
#endif
#endif

// The address sanitizer alone looks for leaks.
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

#ifdef SPATE_TEST_THREAD_SANITIZED
inline constexpr bool kIsThreadSanitized = true;
#else
inline constexpr bool kIsThreadSanitized = false;
#endif

}  // namespace spate::testing
