// Crowd: the scopes of a random program. Any task may cancel, stop or replace any of them, its own
// included, or run their loop.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

#include "spate/coro/scope.h"
#include "tests/support/random.h"
#include "tests/support/scripted.h"

namespace spate::testing {

class Crowd {
 public:
  Crowd(Loop& loop, ScriptedClock& clock, Random& random)
      : loop_(loop), clock_(clock), random_(random) {
    for (auto& scope : scopes_) scope = std::make_unique<coro::Scope>(loop_);
  }

  coro::Scope& any() { return *scopes_[random_.below(scopes_.size())]; }
  bool is_empty() const {
    for (const auto& scope : scopes_) {
      if (!scope->empty()) return false;
    }
    return true;
  }
  // Tasks whose failure was reported to on_error().
  int failed() const { return failed_; }

  void disturb_any() {
    switch (random_.below(3)) {
      case 0:
        return any().cancel();
      case 1:
        return any().stop();
      default:
        return replace_any();
    }
  }
  // Called by a task that the loop has resumed.
  void run_loop_inside() {
    if (nested_ == 2) return;
    ++nested_;
    clock_.advance(Nanos{random_.span(3'000'000)});
    EXPECT_FALSE(loop_.run(Run::no_wait));
    --nested_;
  }
  void end() {
    for (auto& scope : scopes_) scope.reset();
  }

 private:
  void replace_any() {
    auto& scope = scopes_[random_.below(scopes_.size())];
    const auto old = std::exchange(scope, std::make_unique<coro::Scope>(loop_));
    if (!random_.one_in(2)) return;
    scope->on_error([this](std::error_code error) {
      EXPECT_TRUE(error);
      ++failed_;
    });
  }

  Loop& loop_;
  ScriptedClock& clock_;
  Random& random_;
  std::array<std::unique_ptr<coro::Scope>, 3> scopes_;
  int failed_ = 0;
  int nested_ = 0;
};

}  // namespace spate::testing
