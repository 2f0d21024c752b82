// Misuse prints a message and aborts, in builds that check for it.
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

TEST_F(MisuseDeathTest, SetWhileActiveAborts) {
  Io io{loop_, 0, Events::read, [] {}};
  EXPECT_TRUE(io.start());
  EXPECT_DEATH(io.set(1, Events::read), "Io::set.*stop.. the Io.*is_active.*io.h:[0-9]+");
}

TEST_F(MisuseDeathTest, StartWithoutDescriptorOrEventAborts) {
  Io io{loop_, [] {}};
  EXPECT_DEATH(io.start(), "Io::start.*set.. a descriptor and an event");
  EXPECT_DEATH(std::ignore = io.start_now(), "");
  io.set(0, Events::none);
  EXPECT_DEATH(io.start(), "Io::start.*set.. a descriptor and an event");
}

TEST_F(MisuseDeathTest, UnwatchableIoEventAborts) {
  Io io{loop_, 0, Events::read, [] {}};
  EXPECT_DEATH(io.set(0, Events::timer), "an Io watches for");
  EXPECT_DEATH(io.modify(Events::error), "an Io watches for");
}

TEST_F(MisuseDeathTest, SetPriorityWhilePendingAborts) {
  Timer timer{loop_, [] {}};
  EXPECT_TRUE(timer.feed());
  EXPECT_DEATH(timer.set_priority(1), "clear_pending.. first");
}

TEST_F(MisuseDeathTest, DestroyingLoopInsideItsCallbackAborts) {
  EXPECT_TRUE(
      loop_.post([this] { EXPECT_DEATH(scripted_.loop.reset(), "destroyed inside its run"); }));
  turn(loop_);
}

TEST_F(MisuseDeathTest, EmptyCallbackAborts) {
  EXPECT_DEATH(std::ignore = loop_.after(1s, nullptr), "Loop::after.*nothing to call");
  EXPECT_DEATH(std::ignore = loop_.defer(Job()), "Loop::defer.*nothing to call");
  EXPECT_DEATH(std::ignore = loop_.on_signal(SIGUSR1, nullptr), "nothing to call");
  EXPECT_DEATH(std::ignore = loop_.once(0, Events::read, 1s, nullptr), "nothing to call");
}

TEST_F(MisuseDeathTest, NonPositiveIntervalAborts) {
  Periodic periodic{loop_, [] {}};
  EXPECT_DEATH(periodic.start_every(0ns), "");
  EXPECT_DEATH(periodic.reschedule_with(nullptr), "");
}

}  // namespace
}  // namespace spate::testing

#endif
