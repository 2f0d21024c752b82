// Many watchers of all kinds, destroyed, made, started, stopped and fed at random from inside each
// other's callbacks. The seed is part of the test's output; nothing else is random.
#include <random>

#include "tests/conformance/victims.h"

namespace spate::testing {
namespace {

class Chaos {
 public:
  Chaos(Loop& loop, std::uint32_t seed) : loop_(loop), random_(seed), crowd_(kCrowd) {}

  void run(int turns) {
    for (std::size_t i = 0; i < crowd_.size(); ++i) make(i);
    for (int i = 0; i < turns; ++i) {
      surroundings_.pipe.drain();
      surroundings_.pipe.fill();
      act();
      turn(loop_);
    }
    acting_ = false;
    turn(loop_);
    crowd_.clear();
  }
  int calls() const { return calls_; }

 private:
  static constexpr std::size_t kCrowd = 60;

  std::size_t pick(std::size_t end) { return random_() % end; }

  Kind pick_kind() {
    for (;;) {
      const Kind kind = kKinds[pick(std::size(kKinds))];
      // Processes are dear.
      const bool is_child = kind == Kind::child || kind == Kind::traced_child;
      if (!is_child || surroundings_.children.size() < 10) return kind;
    }
  }

  void make(std::size_t place) {
    crowd_[place] = make_victim(pick_kind(), loop_, surroundings_);
    crowd_[place]->then([this] {
      ++calls_;
      if (!acting_) return;
      for (std::size_t times = pick(3); times > 0; --times) act();
    });
    if (pick(4) != 0) crowd_[place]->start();
  }

  // Makes one change to any watcher, including the one whose callback is running.
  void act() {
    const std::size_t place = pick(crowd_.size());
    Victim* victim = crowd_[place].get();
    switch (victim == nullptr ? 0 : pick(10)) {
      case 0:
      case 1:
        make(place);  // Destroys the one in this place.
        break;
      case 2:
        crowd_[place].reset();
        break;
      case 3:
        victim->start();
        break;
      case 4:
        victim->stop();
        break;
      case 5:
        EXPECT_TRUE(victim->feed());
        break;
      case 6:
        victim->clear_pending();
        break;
      case 7:
        if (loop_.depth() < 3) turn(loop_);
        break;
      default:
        if (victim->is_active()) victim->cause();
    }
  }

  Loop& loop_;
  std::mt19937 random_;
  Surroundings surroundings_;
  std::vector<std::unique_ptr<Victim>> crowd_;
  bool acting_ = true;
  int calls_ = 0;
};

using DestroyRandomTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(DestroyRandomTest);

TEST_P(DestroyRandomTest, DestroyingRandomWatchersAnywhereIsSafe) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    SCOPED_TRACE(seed);
    Chaos chaos{*loop_, seed};
    chaos.run(150);
    EXPECT_GT(chaos.calls(), 500);
    EXPECT_EQ(loop_->active_count(), 0);
    EXPECT_EQ(loop_->pending_count(), 0u);
    EXPECT_EQ(loop_->metrics().active_fds, 0u);
    EXPECT_EQ(loop_->metrics().active_timers, 0u);
    EXPECT_TRUE(runs_out(*loop_));
  }
}

TEST_P(DestroyRandomTest, LoopMayBeDestroyedFirst) {
  for (const std::uint32_t seed : {11u, 12u, 13u}) {
    SCOPED_TRACE(seed);
    Surroundings surroundings;
    std::vector<std::unique_ptr<Victim>> crowd;
    std::mt19937 random(seed);
    auto loop = make_loop(backend());
    for (int i = 0; i < 80; ++i) {
      const Kind kind = kKinds[random() % std::size(kKinds)];
      crowd.push_back(make_victim(kind, *loop, surroundings));
      if (random() % 4 != 0) crowd.back()->start();
      if (random() % 3 == 0) EXPECT_TRUE(crowd.back()->feed());
      if (random() % 3 == 0 && crowd.back()->is_active()) crowd.back()->cause();
      if (random() % 8 == 0) testing::turn(*loop);
      if (random() % 4 == 0) crowd[random() % crowd.size()]->stop();
    }
    loop.reset();
    for (const auto& victim : crowd) EXPECT_FALSE(victim->is_active() || victim->is_pending());
  }
}

}  // namespace
}  // namespace spate::testing
