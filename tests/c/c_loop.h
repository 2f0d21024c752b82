// A loop of C's, and watchers that need no callback.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "spate.h"

namespace spate::testing {

inline constexpr std::int64_t kMillisecond = 1'000'000;

class CLoop {
 public:
  explicit CLoop(const spate_loop_options* options = nullptr) {
    EXPECT_EQ(spate_loop_create(&loop_, options), 0);
  }
  ~CLoop() { spate_loop_destroy(loop_); }
  CLoop(const CLoop&) = delete;
  CLoop& operator=(const CLoop&) = delete;

  spate_loop* get() const { return loop_; }

 private:
  spate_loop* loop_ = nullptr;
};

// A watcher to feed: a timer, which needs the least set-up.
class Flag {
 public:
  explicit Flag(const CLoop& loop, spate_timer_fn* callback = nullptr, void* data = nullptr) {
    spate_timer_init(&timer_, loop.get(), callback, data);
  }
  ~Flag() { spate_timer_stop(&timer_); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

  spate_timer* timer() { return &timer_; }
  spate_watcher* watcher() { return &timer_.watcher; }
  void feed(std::uint32_t events = SPATE_CUSTOM) { EXPECT_EQ(spate_feed(watcher(), events), 0); }

 private:
  spate_timer timer_;
};

// A batch and its array.
class Batch {
 public:
  explicit Batch(const CLoop& loop, int most = 16) : loop_(loop), due_(most) {}

  int poll(std::int64_t timeout = 0) {
    next_ = 0;
    return count_ =
               spate_loop_poll(loop_.get(), due_.data(), static_cast<int>(due_.size()), timeout);
  }
  spate_event& operator[](int i) { return due_[static_cast<std::size_t>(i)]; }
  spate_watcher* claim(int i) { return spate_event_claim(loop_.get(), &(*this)[i]); }
  // Returns the next that was not deleted, or nullptr.
  spate_watcher* claim_next() {
    while (next_ < count_) {
      if (spate_watcher* const watcher = claim(next_++)) return watcher;
    }
    return nullptr;
  }

 private:
  const CLoop& loop_;
  std::vector<spate_event> due_;
  int count_ = 0;
  int next_ = 0;
};

}  // namespace spate::testing
