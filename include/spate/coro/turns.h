// Turns: who waits for one of several things, first come, first served. For those who write
// awaitables.
//
// Who is woken has been promised one, and takes it when he goes on. If he is destroyed before, he
// has taken nothing, and it is promised to the next one.
// Threads: the loop's thread only.
#pragma once

#include <cstddef>

#include "spate/coro/scope.h"

namespace spate::coro {

class Turns {
 public:
  // Of `count` things, whether one is left for somebody who has not waited. Not too often in a row:
  // then others have their turn.
  bool leaves_one(std::size_t count) {
    return line_.empty() && promised_ < count && --patience_ >= 0;
  }
  bool is_anybody_waiting() const { return !line_.empty(); }

  void wait(Then then, std::size_t count) {
    patience_ = kPatience;
    line_.push(then.place());
    promise(count);
  }
  // There are `count` of them: wakes who can have one.
  void promise(std::size_t count) {
    while (!line_.empty() && promised_ < count) promise_first().wake();
  }
  // The same of the first who waits, whom the caller wakes.
  Then promise_first() {
    ++promised_;
    return line_.first()->then();
  }

  // He goes on, and takes his.
  void take(Then& then) {
    if (then) --promised_;
    then = Then();
  }
  // He does not. True: what he was promised is to be promised again.
  bool give_up(Then& then) {
    if (!then) return false;
    const bool was_promised = !then.place().is_waiting();
    then.leave();
    if (was_promised) --promised_;
    return was_promised;
  }

 private:
  static constexpr int kPatience = 128;

  Line line_;
  int patience_ = kPatience;
  std::size_t promised_ = 0;
};

}  // namespace spate::coro
