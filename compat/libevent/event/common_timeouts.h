// CommonTimeouts: the durations that a program has announced to a base as frequent.
//
// Semantics: event2/event.h (event_base_init_common_timeout); probed: a copy of the value works as
// well; their maximum number.
//
// A program gets a timeval that the library recognises: above the 20 bits of the microseconds,
// tv_usec has a mark and the number of the duration. spate's timers do not need the hint, so the
// library only removes the mark.
#pragma once

#include "compat/libevent/event_api.h"
#include "compat/libevent/timeval.h"

namespace spate::libevent {

class CommonTimeouts {
 public:
  CommonTimeouts() = default;
  CommonTimeouts(const CommonTimeouts&) = delete;
  CommonTimeouts& operator=(const CommonTimeouts&) = delete;
  ~CommonTimeouts();

  // Stays at its address while the base exists. Returns null if there are too many, or without
  // memory.
  const timeval* add(const timeval& duration);

  // Removes the mark, if there is one.
  timeval duration_of(const timeval& timeout) const {
    return is_marked(timeout) ? plain(timeout) : timeout;
  }

 private:
  static constexpr int kMax = 256;
  static constexpr int kMicrosBits = 20;
  static constexpr long kMarkMask = 0xf0000000;
  static constexpr long kMark = 0x50000000;

  [[nodiscard]] static int number_in(const timeval& timeout) {
    return static_cast<int>(timeout.tv_usec >> kMicrosBits & (kMax - 1));
  }
  bool is_marked(const timeval& timeout) const {
    return (timeout.tv_usec & kMarkMask) == kMark && number_in(timeout) < count_;
  }
  static timeval plain(const timeval& timeout) {
    return {.tv_sec = timeout.tv_sec, .tv_usec = timeout.tv_usec & ((1L << kMicrosBits) - 1)};
  }

  timeval* timeouts_[kMax];
  int count_ = 0;
};

}  // namespace spate::libevent
