// Stream::stop(): no callback comes until the next start().
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "streams/harness.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using Stopping = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Stopping, all_kinds(), name_of);

TEST_P(Stopping, DataArrivingMeanwhileIsDeliveredToNextHandler) {
  Recorder next;
  right_.stop();
  EXPECT_TRUE(left_.write("meanwhile"));
  left_.end();
  run_turns(loop_, 10);
  EXPECT_EQ(right_log_.data_calls, 0);
  EXPECT_EQ(right_log_.log, "");
  EXPECT_TRUE(right_.is_open());
  right_.start(next);
  run_until(loop_, [&] { return next.closed_calls == 1; });
  EXPECT_EQ(next.received, "meanwhile");
  EXPECT_EQ(next.log, "end closed ");
}

TEST_P(Stopping, LeavesRestToNextHandlerInItsOwnCallback) {
  Recorder next;
  right_log_.use = [&](Bytes) -> std::size_t {
    right_.stop();
    return 6;
  };
  EXPECT_TRUE(left_.write("HELLO\nbody"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  run_turns(loop_, 10);
  EXPECT_EQ(right_log_.data_calls, 1);
  right_.start(next);
  run_until(loop_, [&] { return next.received == "body"; });
}

TEST_P(Stopping, LossIsReportedToNextHandler) {
  Recorder next;
  right_.stop();
  left_.abort();
  run_turns(loop_, 10);
  EXPECT_EQ(right_log_.log, "");
  right_.start(next);
  run_until(loop_, [&] { return next.closed_calls == 1; });
}

TEST_P(Stopping, HandlerMayBeDestroyedAfterwards) {
  auto gone = std::make_unique<Recorder>();
  right_.start(*gone);
  right_.stop();
  gone.reset();
  EXPECT_TRUE(left_.write("to nobody"));
  left_.end();
  run_turns(loop_, 10);
  EXPECT_TRUE(right_.write("but this is sent"));
  run_turns(loop_, 10);
}

TEST_P(Stopping, DoesNothingBeforeStartOrWithoutConnection) {
  Stream none;
  none.stop();
  right_.stop();
  right_.stop();
  right_.abort();
  right_.stop();
}

TEST_P(Stopping, NeitherLosesNorRepeatsData) {
  for (const std::uint64_t seed : seeds(30)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string sent, received;
    Recorder recorders[2];
    Recorder* listening = &recorders[0];
    for (Recorder& each : recorders) {
      each.use = [&](Bytes bytes) {
        EXPECT_EQ(&each, listening);
        const std::size_t used = random.one_in(3) ? random.below(bytes.size()) : bytes.size();
        received.append(text_of(bytes.first(used)));
        if (random.one_in(4)) right_.stop(), listening = nullptr;
        return used;
      };
    }
    right_.start(recorders[0]);
    for (int step = 0; step < 60; ++step) {
      const std::string piece(random.below(200), static_cast<char>('a' + step % 26));
      if (random.one_in(2) && left_.write(piece)) sent += piece;
      if (random.one_in(5)) right_.stop(), listening = nullptr;
      if (random.one_in(3)) right_.start(*(listening = &recorders[random.below(2)]));
      if (random.one_in(6)) random.one_in(2) ? right_.pause() : right_.resume();
      run_turns(loop_, random.between(0, 2));
    }
    right_.resume();
    for (Recorder& each : recorders) {
      each.use = [&](Bytes bytes) {
        received.append(text_of(bytes));
        return bytes.size();
      };
    }
    right_.start(recorders[0]);
    run_until(loop_, [&] { return received.size() >= sent.size(); });
    EXPECT_EQ(received, sent);
    right_.stop();
  }
}

}  // namespace
}  // namespace spate::testing
