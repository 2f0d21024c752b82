// Budget: a limit on how often something may happen: a burst, and a rate per second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "spate/time.h"

namespace spate::http {

class Budget {
 public:
  constexpr Budget(std::int64_t most, std::int64_t per_second)
      : most_(most), per_second_(per_second), left_(most) {}

  // Takes one unit. False if none is left.
  bool spend(Nanos now) {
    refill(now);
    return --left_ >= 0;
  }
  void give_back(std::int64_t count) { left_ = std::min(left_ + count, most_); }

 private:
  void refill(Nanos now) {
    const std::int64_t seconds = (now - since_) / Nanos{1'000'000'000};
    if (seconds <= 0) return;
    since_ = now;
    left_ = std::min(most_, left_ + std::min(seconds, most_) * per_second_);
  }

  std::int64_t most_;
  std::int64_t per_second_;
  std::int64_t left_;
  Nanos since_{0};
};

}  // namespace spate::http
