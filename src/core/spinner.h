// Spinner: how long a loop polls before it sleeps (LoopOptions::spin).
//
// Polling pays if the event arrives in less time than sleeping and waking take, and is wasted
// otherwise. Recent waits predict the next one, so their mean decides. After polling in vain it
// pauses, twice as long each time. That matters most if the peer runs on the same core, and cannot
// run while this thread polls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "spate/loop.h"

namespace spate {

class Spinner {
 public:
  explicit Spinner(const Spin& spin) : spin_(spin) {
    spin_.window = std::min(spin_.window, Nanos::max() / kLongWait);
  }

  bool is_on() const { return spin_.window > Nanos{0}; }

  // Returns how long to poll in a wait that begins now.
  Nanos window(Nanos now) {
    if (!spin_.is_adaptive) return spin_.window;
    earn(now);
    if (pause_ > 0) {
      --pause_;
      return Nanos{0};
    }
    if (mean_ > spin_.window) return Nanos{0};
    const Nanos wanted = std::min(spin_.window, std::max(kShortest, mean_ * kPatience));
    return wanted <= credit_ ? wanted : Nanos{0};
  }

  // Records a wait: how long it polled, how long it lasted in all, and whether the event arrived
  // while polling.
  void note(Nanos looked, Nanos waited, bool has_found) {
    if (!spin_.is_adaptive) return;
    mean_ += (std::min(waited, kLongWait * spin_.window) - mean_) / kMemory;
    credit_ -= looked;
    if (has_found) {
      next_pause_ = kFirstPause;
    } else if (looked > Nanos{0}) {
      pause_ = next_pause_;
      next_pause_ = std::min(next_pause_ * 2, kLongestPause);
    }
  }

 private:
  static constexpr Nanos kShortest{20'000};        // Polling for less would miss events with
                                                   // jitter.
  static constexpr int kPatience = 4;              // The window, in units of the mean.
  static constexpr int kMemory = 8;                // The mean is over about this many waits.
  static constexpr int kLongWait = 8;              // Windows: longer waits count as this.
  static constexpr std::uint32_t kFirstPause = 4;  // Waits.
  static constexpr std::uint32_t kLongestPause = 4096;
  static constexpr Nanos kSaved{100'000'000};  // The period whose share may be spent at once.

  // Adds the share of the time that has passed.
  void earn(Nanos now) {
    const Nanos passed = std::min(now - std::exchange(earned_, now), kSaved);
    const auto most =
        Nanos{static_cast<std::int64_t>(spin_.share * static_cast<double>(kSaved.count()))};
    const auto earned =
        Nanos{static_cast<std::int64_t>(spin_.share * static_cast<double>(passed.count()))};
    credit_ = std::min(credit_ + earned, most);
  }

  Spin spin_;
  Nanos mean_{0};            // The mean of recent waits, weighted.
  Nanos credit_{0};          // How long it may poll without exceeding its share.
  Nanos earned_{0};          // The time up to which the share was added.
  std::uint32_t pause_ = 0;  // Remaining waits without polling.
  std::uint32_t next_pause_ = kFirstPause;
};

}  // namespace spate
