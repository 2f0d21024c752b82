// The destroy matrix: every kind of watcher, destroyed by its own callback, an earlier or a later
// one of the same turn, with a queued event or without, on every backend.
#include <algorithm>

#include "tests/conformance/victims.h"

namespace spate::testing {
namespace {

enum class By { itself, earlier, later };

struct Case {
  std::string_view backend;
  Kind kind;
  By by;
  bool pending;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string_view backend : backends_here()) {
    for (const Kind kind : kKinds) {
      for (const By by : {By::itself, By::earlier, By::later}) {
        cases.push_back({backend, kind, by, true});
        cases.push_back({backend, kind, by, false});
      }
    }
  }
  return cases;
}

std::string name_of(const Case& which) {
  constexpr const char* kBy[] = {"ByItself", "ByAnEarlierCallback", "ByALaterCallback"};
  return std::string(name_of(which.kind)) + kBy[static_cast<int>(which.by)] +
         (which.pending ? "WhilePending_" : "WhileNotPending_") + std::string(which.backend);
}

void PrintTo(const Case& which, std::ostream* out) { *out << name_of(which); }

class DestroyTest : public ::testing::TestWithParam<Case> {
 protected:
  void destroy() {
    if (victim_ == nullptr) return;
    if (GetParam().pending) {
      EXPECT_TRUE(victim_->feed());
      EXPECT_TRUE(victim_->is_pending());
    } else {
      victim_->clear_pending();
      EXPECT_FALSE(victim_->is_pending());
    }
    calls_ = victim_->calls();
    victim_.reset();
  }

  std::unique_ptr<Loop> loop_ = make_loop(GetParam().backend);
  Surroundings surroundings_;
  std::unique_ptr<Victim> victim_ = make_victim(GetParam().kind, *loop_, surroundings_);
  int calls_ = -1;
};

TEST_P(DestroyTest, DestroyingWatcherIsSafe) {
  const By by = GetParam().by;
  // Hooks before the wait are called only together with others of their kind.
  Probe<Prepare> prepare{*loop_};
  Probe<Check> check{*loop_};
  prepare.then = check.then = [this] { destroy(); };
  if (by == By::itself) victim_->then([this] { destroy(); });
  victim_->start();
  EXPECT_TRUE(victim_->is_active());
  victim_->cause();
  if (by != By::itself) {
    const int priority = by == By::earlier ? 2 : -2;
    prepare->set_priority(priority);
    check->set_priority(priority);
    EXPECT_TRUE(GetParam().kind == Kind::prepare ? prepare->start() : check->start());
  }
  for (int i = 0; i < 100 && victim_ != nullptr; ++i) turn(*loop_);
  ASSERT_EQ(victim_, nullptr) << "the callback was not called";
  EXPECT_EQ(calls_, by == By::earlier ? 0 : 1);
  prepare->stop();
  check->stop();
  turn(*loop_, 3);
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_EQ(loop_->pending_count(), 0u);
  EXPECT_TRUE(runs_out(*loop_));
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, DestroyTest, ::testing::ValuesIn(all_cases()),
                         [](const ::testing::TestParamInfo<Case>& tested) {
                           return name_of(tested.param);
                         });

// ---- the loop with everything active

using DestroyLoopTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(DestroyLoopTest);

TEST_P(DestroyLoopTest, DestroyWithEveryKindActiveIsSafe) {
  Surroundings surroundings;
  std::vector<std::unique_ptr<Victim>> victims;
  for (const Kind kind : kKinds) {
    for (int i = 0; i < 3; ++i) victims.push_back(make_victim(kind, *loop_, surroundings));
  }
  for (const auto& victim : victims) victim->start();
  turn();
  loop_.reset();
  for (const auto& victim : victims) EXPECT_FALSE(victim->is_active());
  victims.clear();
}

TEST_P(DestroyLoopTest, DestroyWithEveryKindTriggeredAndPendingIsSafe) {
  Surroundings surroundings;
  std::vector<std::unique_ptr<Victim>> victims;
  for (const Kind kind : kKinds) victims.push_back(make_victim(kind, *loop_, surroundings));
  for (const auto& victim : victims) {
    victim->start();
    victim->cause();
    EXPECT_TRUE(victim->feed());
  }
  EXPECT_FALSE(loop_->after(0ns, [] {}));
  EXPECT_TRUE(loop_->post([] {}));
  loop_.reset();
  for (const auto& victim : victims) EXPECT_FALSE(victim->is_active() || victim->is_pending());
  std::reverse(victims.begin(), victims.end());
  victims.clear();
}

TEST_P(DestroyLoopTest, DestroyAfterTriggeredWatchersIsSafe) {
  Surroundings surroundings;
  std::vector<std::unique_ptr<Victim>> victims;
  for (const Kind kind : kKinds) victims.push_back(make_victim(kind, *loop_, surroundings));
  for (const auto& victim : victims) {
    victim->start();
    victim->cause();
  }
  victims.clear();
  EXPECT_EQ(loop_->active_count(), 0);
  turn();
  loop_.reset();
}

}  // namespace
}  // namespace spate::testing
