// SharedLimit: a limit on connections that several threads share. A thread that reaches it pauses,
// and is notified when a connection has ended. Any thread.
//
// The count and the flag "a thread is paused" are one atomic word. So no end of a connection is
// missed in between, and the flag is set only while there is no room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spate {

class SharedLimit {
 public:
  explicit SharedLimit(std::size_t max) : max_(max) {}

  // Adds one. True if there is no room for another: the caller pauses.
  bool enter() {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    while (!become(state, marked(state + kOne))) {
    }
    return !has_room(state + kOne);
  }
  // Removes one. True if paused threads must be notified that there is room.
  bool leave() {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    while (!become(state, has_room(state - kOne) ? (state - kOne) & ~kRests : state - kOne)) {
    }
    return (state & kRests) != 0 && has_room(state - kOne);
  }
  // Returns true if there is still no room: the caller stays paused.
  bool rests_on() {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    while (!become(state, marked(state))) {
    }
    return !has_room(state);
  }

 private:
  static constexpr std::uint64_t kRests = 1;
  static constexpr std::uint64_t kOne = 2;

  bool has_room(std::uint64_t state) const { return state / kOne < max_; }
  std::uint64_t marked(std::uint64_t state) const {
    return has_room(state) ? state : state | kRests;
  }
  bool become(std::uint64_t& state, std::uint64_t next) {
    return state_.compare_exchange_weak(state, next);
  }

  const std::size_t max_;
  std::atomic<std::uint64_t> state_{0};
};

}  // namespace spate
