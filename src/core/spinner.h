// Spinner: how long a loop looks for events before it sleeps (LoopOptions::spin).
//
// Looking pays when what is waited for comes before the thread could have gone to sleep and been
// woken, and is lost when it does not. What comes next is like what came last: so the mean of the
// recent waits decides, and a look in vain is answered with a pause, twice as long each time. That
// matters most where the peer runs on the same core, and cannot answer as long as somebody looks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "spate/loop.h"

namespace spate {

class Spinner {
 public:
  explicit Spinner(const Spin& spin) : spin_(spin) {}

  bool is_on() const { return spin_.window > Nanos{0}; }

  // How long to look in a wait that begins now.
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

  // How that wait went: for how long it looked, how long it was in all, and whether what it waited
  // for came while it looked.
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
  static constexpr Nanos kShortest{20'000};        // To look for less would miss what jitters.
  static constexpr int kPatience = 4;              // So many times the mean.
  static constexpr int kMemory = 8;                // How many waits the mean is of, about.
  static constexpr int kLongWait = 8;              // Windows: one longer wait counts as this one.
  static constexpr std::uint32_t kFirstPause = 4;  // Waits.
  static constexpr std::uint32_t kLongestPause = 4096;
  static constexpr Nanos kSaved{100'000'000};  // The time whose share may be spent at once.

  // The share of the time that has passed.
  void earn(Nanos now) {
    const Nanos passed = std::min(now - std::exchange(earned_, now), kSaved);
    const auto most =
        Nanos{static_cast<std::int64_t>(spin_.share * static_cast<double>(kSaved.count()))};
    const auto earned =
        Nanos{static_cast<std::int64_t>(spin_.share * static_cast<double>(passed.count()))};
    credit_ = std::min(credit_ + earned, most);
  }

  Spin spin_;
  Nanos mean_{0};            // Of recent waits, the last ones counting most.
  Nanos credit_{0};          // How long it may look without exceeding its share.
  Nanos earned_{0};          // Until when its share is in the credit.
  std::uint32_t pause_ = 0;  // So many waits more without looking.
  std::uint32_t next_pause_ = kFirstPause;
};

}  // namespace spate
