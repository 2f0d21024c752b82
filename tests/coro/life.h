// Life: a local variable of each coroutine of a random program, which tracks whether it runs, waits
// or is destroyed.
#pragma once

#include <gtest/gtest.h>

namespace spate::testing {

// Counters of all coroutines of a test.
struct Lives {
  int live = 0;
  int left = 0;   // Frames that are gone.
  int ended = 0;  // Frames whose coroutine ran to its end.
  int resumed = 0;
};

class Life {
 public:
  explicit Life(Lives& all) : all_(all) { ++all_.live; }
  ~Life() {
    EXPECT_FALSE(is_running_) << "destroyed while it runs";
    --all_.live;
    ++all_.left;
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void waits() {
    EXPECT_TRUE(is_running_);
    is_running_ = false;
  }
  void goes_on() {
    EXPECT_FALSE(is_running_) << "resumed while it runs";
    is_running_ = true;
    ++all_.resumed;
  }
  void ends() {
    waits();
    ++all_.ended;
  }

 private:
  Lives& all_;
  bool is_running_ = true;
};

}  // namespace spate::testing
