// Conversion between struct timeval and spate's nanoseconds.
#pragma once

#include <sys/time.h>

#include <algorithm>
#include <cstdint>

namespace spate::libevent {

inline constexpr std::int64_t kMicrosPerSecond = 1'000'000;
// Some 136 years, so that adding them to a reading of the clock cannot overflow.
inline constexpr std::int64_t kSecondsMost = std::int64_t{1} << 32;

inline bool is_set(const timeval& time) { return time.tv_sec != 0 || time.tv_usec != 0; }

// Clamped to kSecondsMost either way. The microseconds may be more than a second.
inline std::int64_t nanos_of(const timeval& time) {
  const auto cut = [](std::int64_t x) { return std::clamp(x, -kSecondsMost, kSecondsMost); };
  return cut(time.tv_sec) * 1'000'000'000 + cut(time.tv_usec) * 1000;
}

// For microseconds out of range. libevent carries one second at most, and compares the rest: a
// deadline with microseconds below zero expires with its second, one with a million or more with
// the next.
[[gnu::cold, gnu::noinline]] inline std::int64_t odd_deadline_after(std::int64_t now,
                                                                    const timeval& time) {
  std::int64_t seconds =
      now / 1'000'000'000 + std::clamp<std::int64_t>(time.tv_sec, -kSecondsMost, kSecondsMost);
  std::int64_t micros = now % 1'000'000'000 / 1000 +
                        std::clamp<std::int64_t>(time.tv_usec, -kSecondsMost, kSecondsMost);
  if (micros >= kMicrosPerSecond) {
    ++seconds;
    micros -= kMicrosPerSecond;
  }
  micros = std::clamp<std::int64_t>(micros, 0, kMicrosPerSecond);
  return seconds * 1'000'000'000 + micros * 1000 + now % 1000;
}

inline std::int64_t deadline_after(std::int64_t now, const timeval& time) {
  const auto micros = static_cast<std::uint64_t>(time.tv_usec);
  if (micros >= kMicrosPerSecond) [[unlikely]] {
    return odd_deadline_after(now, time);
  }
  return now + nanos_of(time);
}

// The stored timeout of a persistent event, never negative: nanoseconds, or if the timeout is not
// positive, kBackwards plus it. Such an event is due in each turn. Zero means no timeout.
inline constexpr std::int64_t kBackwards = INT64_MAX;
inline constexpr std::int64_t kForwardsMost = kBackwards / 2;

inline std::int64_t interval_of(const timeval& time) {
  const bool is_odd = static_cast<std::uint64_t>(time.tv_usec) >= kMicrosPerSecond;
  const std::int64_t nanos = is_odd ? odd_deadline_after(0, time) : nanos_of(time);
  return nanos < 0 || (nanos == 0 && is_odd) ? kBackwards + nanos : nanos;
}
static_assert((kSecondsMost + kSecondsMost / kMicrosPerSecond + 1) * 1'000'000'000 < kForwardsMost);

inline timeval timeval_of(std::int64_t nanos) {
  return {.tv_sec = nanos / 1'000'000'000, .tv_usec = nanos % 1'000'000'000 / 1000};
}

}  // namespace spate::libevent
