// Operations on streams that are already closed or half closed.
#include <gtest/gtest.h>

#include "streams/harness.h"

namespace spate::testing {
namespace {

struct Pair {
  std::unique_ptr<Loop> loop = *Loop::create();
  Stream left;
  Stream right;
  Recorder log;

  Pair() {
    auto made = std::move(*Stream::memory_pair(*loop));
    left = std::move(made.first);
    right = std::move(made.second);
  }
  void destroy_left() { const Stream gone = std::move(left); }
};

// The event that resume() queued was called on a destroyed connection.
TEST(ClosedStream, MayBeResumedAndDestroyed) {
  Pair pair;
  pair.log.use = [](Bytes) { return std::size_t{0}; };
  pair.left.start(pair.log);
  EXPECT_TRUE(pair.right.write("unread"));
  run_turns(*pair.loop, 3);
  pair.left.pause();
  pair.left.abort();
  pair.left.resume();
  pair.destroy_left();
  run_turns(*pair.loop, 3);
  EXPECT_EQ(pair.log.log, "");
}

// Bytes left by the handler were offered again after the end.
TEST(EndedStream, DeliversNothingMoreWhenResumed) {
  Pair pair;
  pair.log.use = [](Bytes) { return std::size_t{0}; };
  pair.left.set_half_open(true);
  pair.left.start(pair.log);
  EXPECT_TRUE(pair.right.write("unread"));
  pair.right.end();
  run_until(*pair.loop, [&] { return pair.log.log == "end "; });
  EXPECT_EQ(pair.log.data_calls, 1);
  pair.left.pause();
  pair.left.resume();
  run_turns(*pair.loop, 3);
  EXPECT_EQ(pair.log.data_calls, 1);
}

// A part of the bytes was sent, and then the connection was closed.
TEST(FullStream, SendsNoPartOfDroppedWrite) {
  Pair pair;
  ASSERT_TRUE(
      pair.left.set_limits({.low = 0, .high = 10, .max = 100'000, .when_full = WhenFull::drop}));
  EXPECT_FALSE(pair.left.write(pattern(100'001 + 1'000'000)));
  EXPECT_TRUE(pair.left.write("fits"));
  EXPECT_TRUE(pair.left.is_writable());
  pair.right.start(pair.log);
  run_until(*pair.loop, [&] { return !pair.log.received.empty(); });
  EXPECT_EQ(pair.log.received, "fits");
}

TEST(ClosedStream, MayBeStartedAndDestroyed) {
  Pair pair;
  pair.left.abort();
  pair.left.start(pair.log);
  pair.destroy_left();
  run_turns(*pair.loop, 3);
  EXPECT_EQ(pair.log.log, "");
}

}  // namespace
}  // namespace spate::testing
