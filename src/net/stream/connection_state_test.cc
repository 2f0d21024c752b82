#include "net/stream/connection_state.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "spate/error.h"

namespace spate {
namespace {

constexpr State kStates[] = {State::open,   State::ending,  State::ended,
                             State::broken, State::closing, State::lingering,
                             State::failed, State::closed,  State::over};
constexpr Turn kTurns[] = {Turn::end,     Turn::close, Turn::sent, Turn::refused,
                           Turn::give_up, Turn::shut,  Turn::told};

TEST(ConnectionState, IgnoresRepeatedTransitions) {
  for (const State state : kStates) {
    for (const Turn turn : kTurns) {
      EXPECT_EQ(after(after(state, turn), turn), after(state, turn));
    }
  }
}

TEST(ConnectionState, NeverReopens) {
  for (const State state : kStates) {
    for (const Turn turn : kTurns) {
      EXPECT_TRUE(state == State::open || after(state, turn) != State::open);
    }
  }
}

TEST(ConnectionState, ReachesItsEndAfterShutAndReportFromEveryState) {
  for (const State state : kStates) {
    EXPECT_EQ(after(after(state, Turn::shut), Turn::told), State::over);
  }
}

TEST(ConnectionState, IgnoresInputAfterCloseOrAbort) {
  for (const State state : kStates) {
    EXPECT_GT(after(state, Turn::close), State::broken);
    EXPECT_GT(after(state, Turn::give_up), State::broken);
  }
}

TEST(ConnectionState, IsChangedByTurnsOnly) {
  Lifecycle life;
  EXPECT_FALSE(life.take(Turn::sent));
  EXPECT_TRUE(life.take(Turn::end));
  EXPECT_TRUE(life.is_ending());
  EXPECT_TRUE(life.take(Turn::sent));
  EXPECT_TRUE(life.has_ended());
  EXPECT_FALSE(life.take(Turn::end));
}

// 133 is Linux's highest number of an error.
TEST(ConnectionState, KeepsErrorsOfBothCategories) {
  Lifecycle life;
  EXPECT_FALSE(life.error());
  for (const std::error_code error :
       {std::error_code(EPIPE, std::system_category()), make_error_code(Error::truncated),
        std::error_code(133, std::system_category()), make_error_code(Error::loop_forked)}) {
    life.set_error(error);
    EXPECT_EQ(life.error(), error);
  }
}

}  // namespace
}  // namespace spate
