// Timeout, IdleTimeout: a time without progress after which a connection ends. Times are loop times
// in nanoseconds.
//
// Progress is a store; when one is due is computed only for the next deadline.
#pragma once

#include <algorithm>
#include <cstdint>

#include "spate/time.h"

namespace spate {

inline constexpr std::int64_t kNever = INT64_MAX;

class Timeout {
 public:
  void set(Nanos span) { span_ = span; }
  bool is_set() const { return span_ != Nanos{0}; }
  // Called when it begins, and at each progress.
  void restart(std::int64_t now) { since_ = now; }
  std::int64_t since() const { return since_; }
  std::int64_t due() const {
    return is_set() ? deadline_after(Nanos{since_}, span_).count() : kNever;
  }

 private:
  Nanos span_{0};
  std::int64_t since_ = 0;
};

// In ticks of about a millisecond, so that an idle connection takes little memory.
class IdleTimeout {
 public:
  // Rounded up; a negative one is due at once.
  void set(Nanos span) {
    const auto nanos = static_cast<std::uint64_t>(span < Nanos{0} ? 1 : span.count());
    const std::uint64_t rounded_up = (nanos + kNanosPerTick - 1) / kNanosPerTick;
    ticks_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded_up, INT32_MAX));
  }
  bool is_set() const { return ticks_ != 0; }
  // Called at each activity.
  void restart(std::int64_t now) { since_ = static_cast<std::uint32_t>(now >> kTickBits); }
  // Returns the last activity, rounded up, so that a deadline that counts from it is not early.
  std::int64_t since(std::int64_t now) const {
    const std::int64_t tick = now >> kTickBits;
    const std::uint32_t ago = static_cast<std::uint32_t>(tick) - since_;
    return (tick - ago + 1) * kNanosPerTick;
  }
  std::int64_t due(std::int64_t now) const {
    return is_set() ? since(now) + ticks_ * kNanosPerTick : kNever;
  }

 private:
  static constexpr int kTickBits = 20;
  static constexpr std::int64_t kNanosPerTick = 1 << kTickBits;

  std::uint32_t since_ = 0;  // Wraps around after 52 days.
  std::uint32_t ticks_ = 0;
};

}  // namespace spate
