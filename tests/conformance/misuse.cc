// The caller's mistakes end in a trap, in builds that look for them.
#include <tuple>

#include "tests/conformance/harness.h"

#if defined(SPATE_HARDENED) || !defined(NDEBUG)

namespace spate::testing {
namespace {

class MisuseDeathTest : public ::testing::Test {
 protected:
  MisuseDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "fast"; }

  ScriptedLoop scripted_;
  Loop& loop_ = *scripted_.loop;
};

TEST_F(MisuseDeathTest, SetWhileActive) {
  Io io{loop_, 0, Events::read, [] {}};
  EXPECT_TRUE(io.start());
  EXPECT_DEATH(io.set(1, Events::read), "");
}

TEST_F(MisuseDeathTest, StartWithoutADescriptorOrAnEvent) {
  Io io{loop_, [] {}};
  EXPECT_DEATH(io.start(), "");
  EXPECT_DEATH(std::ignore = io.start_now(), "");
  io.set(0, Events::none);
  EXPECT_DEATH(io.start(), "");
}

TEST_F(MisuseDeathTest, AskingAnIoForWhatItCannotWatch) {
  Io io{loop_, 0, Events::read, [] {}};
  EXPECT_DEATH(io.set(0, Events::timer), "");
  EXPECT_DEATH(io.modify(Events::error), "");
}

TEST_F(MisuseDeathTest, SetPriorityWhilePending) {
  Timer timer{loop_, [] {}};
  EXPECT_TRUE(timer.feed());
  EXPECT_DEATH(timer.set_priority(1), "");
}

TEST_F(MisuseDeathTest, DestroyingTheLoopInsideItsCallback) {
  EXPECT_TRUE(loop_.post([this] { EXPECT_DEATH(scripted_.loop.reset(), ""); }));
  turn(loop_);
}

TEST_F(MisuseDeathTest, AnIntervalThatIsNotPositive) {
  Periodic periodic{loop_, [] {}};
  EXPECT_DEATH(periodic.start_every(0ns), "");
  EXPECT_DEATH(periodic.reschedule_with(nullptr), "");
}

}  // namespace
}  // namespace spate::testing

#endif
