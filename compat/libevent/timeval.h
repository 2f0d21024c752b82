// struct timeval and the nanoseconds that spate counts in.
#pragma once

#include <sys/time.h>

#include <algorithm>
#include <cstdint>

namespace spate::libevent {

// Cut to some 136 years either way, so that adding it to a clock's reading cannot overflow. The
// microseconds may be more than a second.
inline std::int64_t nanos_of(const timeval& time) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  const std::int64_t seconds = std::clamp<std::int64_t>(time.tv_sec, -kMost, kMost);
  const std::int64_t micros = std::clamp<std::int64_t>(time.tv_usec, -kMost, kMost);
  return seconds * 1'000'000'000 + micros * 1000;
}

inline timeval timeval_of(std::int64_t nanos) {
  return {.tv_sec = nanos / 1'000'000'000, .tv_usec = nanos % 1'000'000'000 / 1000};
}

}  // namespace spate::libevent
