// Bytes that on_data() leaves: when and to which handler they are offered again, and the order of
// other callbacks.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "streams/harness.h"

namespace spate::testing {
namespace {

using Unread = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Unread, all_kinds(), name_of);

TEST_P(Unread, StreamIsQuietUntilSomethingArrives) {
  run_turns(loop_, 20);  // TLS: tickets.
  EXPECT_TRUE(left_.is_quiet());
  EXPECT_TRUE(right_.write("x"));
  EXPECT_FALSE(left_.is_quiet());  // The loop has not reported it.
  run_until(loop_, [&] { return left_log_.received == "x"; });
  EXPECT_TRUE(left_.is_quiet());
}

TEST_P(Unread, StreamIsNotQuietWhileInputIsLeft) {
  left_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(right_.write("x"));
  run_until(loop_, [&] { return left_log_.data_calls == 1; });
  EXPECT_FALSE(left_.is_quiet());
}

TEST_P(Unread, StreamIsNotQuietOncePeerEnded) {
  run_turns(loop_, 20);
  left_.set_half_open(true);
  right_.end();
  EXPECT_FALSE(left_.is_quiet());
  run_until(loop_, [&] { return left_log_.log == "end "; });
  EXPECT_FALSE(left_.is_quiet());
  EXPECT_FALSE(Stream().is_quiet());
}

TEST_P(Unread, HandoverInCallbackDeliversLeftoverToNextHandler) {
  Recorder next;
  right_log_.use = [&](Bytes bytes) -> std::size_t {
    const std::size_t end = text_of(bytes).find('\n');
    if (end == std::string_view::npos) return 0;
    right_.start(next);
    return end + 1;
  };
  EXPECT_TRUE(left_.write("HELLO\nbody"));
  run_until(loop_, [&] { return next.received == "body"; });
  EXPECT_EQ(right_log_.received, "HELLO\n");
}

TEST_P(Unread, HandoverAtEndDeliversLeftoverBeforeEnd) {
  Recorder next;
  right_log_.use = [&](Bytes) -> std::size_t {
    if (right_log_.data_calls == 1) {
      left_.end();
      run_turns(loop_, 3);
      right_.start(next);
    }
    return 0;
  };
  EXPECT_TRUE(left_.write("unseen"));
  run_until(loop_, [&] { return next.closed_calls == 1; });
  EXPECT_EQ(next.received, "unseen");
  EXPECT_EQ(next.log, "end closed ");
  EXPECT_EQ(right_log_.log, "");
}

TEST_P(Unread, PauseAndResumeInCallbackDeliverLeftoverAgain) {
  right_log_.use = [&](Bytes bytes) -> std::size_t {
    if (right_log_.data_calls > 1) return bytes.size();
    right_.pause();
    right_.resume();
    return 3;
  };
  EXPECT_TRUE(left_.write("onetwo"));
  run_until(loop_, [&] { return right_log_.received == "onetwo"; });
}

TEST_P(Unread, HandoverAfterFullConsumptionDeliversNothing) {
  right_log_.use = [&](Bytes bytes) -> std::size_t {
    if (right_log_.data_calls == 1) right_.start(right_log_);
    return right_log_.data_calls == 1 ? bytes.size() : bytes.size() - 1;
  };
  EXPECT_TRUE(left_.write("all of it"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  EXPECT_TRUE(left_.write("but one"));
  run_until(loop_, [&] { return right_log_.data_calls == 2; });
  run_turns(loop_, 5);
  EXPECT_EQ(right_log_.data_calls, 2);
}

TEST_P(Unread, HandoverAfterFullConsumptionIgnoresFollowingData) {
  right_log_.use = [&](Bytes bytes) -> std::size_t {
    EXPECT_GT(bytes.size(), 1u) << "nothing has come that it has not seen";
    if (right_log_.data_calls == 1) right_.start(right_log_);
    return right_log_.data_calls == 1 ? bytes.size() : bytes.size() - 1;
  };
  const std::size_t size = 64 * 1024 + 10;  // More than one read.
  EXPECT_TRUE(left_.write(pattern(size)));
  run_until(loop_, [&] { return right_log_.received.size() >= size - 1; });
  run_turns(loop_, 5);
}

TEST_P(Unread, SeveralHandoversAreAllowedAfterEnd) {
  Recorder second;
  Recorder third;
  right_log_.use = [&](Bytes) -> std::size_t {
    left_.end();
    run_turns(loop_, 3);
    right_.start(second);
    return 1;
  };
  second.use = [&](Bytes) -> std::size_t {
    right_.start(third);
    return 1;
  };
  EXPECT_TRUE(left_.write("123"));
  run_until(loop_, [&] { return third.closed_calls == 1; });
  EXPECT_EQ(right_log_.received + "," + second.received + "," + third.received, "1,2,3");
  EXPECT_EQ(third.log, "end closed ");
  EXPECT_EQ(right_log_.log + second.log, "");
}

TEST_P(Unread, LeftoverIsDroppedAtEnd) {
  Recorder next;
  right_.set_half_open(true);
  right_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(left_.write("unused"));
  left_.end();
  run_until(loop_, [&] { return right_log_.log == "end "; });
  right_.start(next);
  right_.pause();
  right_.resume();
  run_turns(loop_, 5);
  EXPECT_EQ(next.data_calls, 0);
  right_.end();
  run_until(loop_, [&] { return next.log == "closed "; });
}

// ---- a handler that stops while its queue is full

constexpr std::size_t kAnswer = 100'000;
constexpr int kRequests = 300;

// Answers each byte; stops when the queue is full and leaves the rest.
class Answering : public StreamTest {
 protected:
  enum class GoesOn { by_itself, by_start, by_resume, by_pausing };

  void serve(GoesOn how, bool pause_reading) {
    ASSERT_TRUE(right_.set_limits({.pause_reading = pause_reading}));
    right_log_.use = [this, how](Bytes bytes) {
      std::size_t used = 0;
      for (; used < bytes.size() && !right_.is_full(); ++used)
        EXPECT_TRUE(right_.write(std::string(kAnswer, 'a')));
      max_queued_ = std::max(max_queued_, right_.queued());
      answered_ += static_cast<int>(used);
      if (how == GoesOn::by_pausing && used < bytes.size()) right_.pause();
      return used;
    };
    right_log_.when_drained = [this, how] {
      if (how == GoesOn::by_start) right_.start(right_log_);
      if (how != GoesOn::by_itself) right_.resume();
    };
  }
  void expect_all_answers() {
    run_until(loop_, [&] { return left_log_.received.size() == kRequests * kAnswer; });
    EXPECT_EQ(answered_, kRequests);
    EXPECT_LE(max_queued_, QueueLimits{}.high + kAnswer);
  }

  int answered_ = 0;
  std::size_t max_queued_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Answering, all_kinds(), name_of);

TEST_P(Answering, ContinuesByItselfWhenQueueDrains) {
  serve(GoesOn::by_itself, false);
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  expect_all_answers();
}

TEST_P(Answering, ContinuesByItselfWhenReadingIsPaused) {
  serve(GoesOn::by_itself, true);
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  expect_all_answers();
}

TEST_P(Answering, ContinuesByStart) {
  serve(GoesOn::by_start, false);
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  expect_all_answers();
}

TEST_P(Answering, ContinuesByStartWhenReadingIsPaused) {
  serve(GoesOn::by_start, true);
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  expect_all_answers();
}

TEST_P(Answering, ContinuesByResume) {
  serve(GoesOn::by_resume, false);
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  expect_all_answers();
}

TEST_P(Answering, ContinuesAfterPause) {
  serve(GoesOn::by_pausing, false);
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  expect_all_answers();
}

TEST_P(Answering, EofIsReportedAfterLastResponse) {
  for (const bool pause_reading : {false, true}) {
    serve(GoesOn::by_itself, pause_reading);
    right_log_.when_ended = [this] { EXPECT_EQ(answered_, kRequests); };
    EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
    if (pause_reading) left_.end();
    expect_all_answers();
    if (!pause_reading) std::exchange(answered_, 0), left_log_.received.clear();
  }
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_FALSE(right_log_.error);
}

TEST_P(Answering, EofIsReportedAfterLastResponseWhileReading) {
  serve(GoesOn::by_itself, false);
  right_log_.when_ended = [this] { EXPECT_EQ(answered_, kRequests); };
  EXPECT_TRUE(left_.write(std::string(kRequests, 'r')));
  left_.end();
  expect_all_answers();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_FALSE(right_log_.error);
}

TEST_P(Unread, EofIsReportedAtOnceAfterConsumptionAtFullQueue) {
  Recorder next;
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10}));
  right_log_.use = [this](Bytes) -> std::size_t {
    EXPECT_TRUE(right_.write(pattern(8'000'000)));
    return 1;
  };
  EXPECT_TRUE(left_.write("12"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  right_.start(next);
  run_until(loop_, [&] { return next.received == "2"; });
  left_.end();
  run_until(loop_, [&] { return next.log == "end "; });
  EXPECT_TRUE(right_.is_full());
}

TEST_P(Unread, HandoverInOnDrainedDeliversLeftoverBeforeEnd) {
  Recorder next;
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10}));
  right_log_.use = [&](Bytes) -> std::size_t {
    if (right_log_.data_calls == 1) EXPECT_TRUE(right_.write(pattern(8'000'000)));
    if (right_log_.data_calls == 2) right_.start(next);
    return 1;
  };
  EXPECT_TRUE(left_.write("123"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  left_.end();
  run_turns(loop_, 5);
  left_.resume();
  run_until(loop_, [&] { return next.closed_calls == 1; });
  EXPECT_EQ(right_log_.received + "," + next.received, "12,3");
  EXPECT_EQ(right_log_.log + next.log, "drained end closed ");
}

TEST_P(Unread, LeftoverIsNotDeliveredWhileFullQueuePausesReading) {
  Recorder next;
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10, .pause_reading = true}));
  right_log_.use = [this](Bytes) -> std::size_t {
    EXPECT_TRUE(right_.write(pattern(8'000'000)));
    return 1;
  };
  EXPECT_TRUE(left_.write("12"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  ASSERT_TRUE(right_.is_full());
  right_.start(next);
  right_.pause();
  right_.resume();
  run_turns(loop_, 5);
  EXPECT_EQ(next.data_calls, 0);
  left_.resume();
  run_until(loop_, [&] { return next.received == "2"; });
  EXPECT_EQ(next.log, "drained ");
}

// ---- limits that change

TEST_P(Unread, ReadingResumesWhenPauseReadingIsDisabled) {
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10, .pause_reading = true}));
  EXPECT_TRUE(right_.write(pattern(8'000'000)));
  ASSERT_TRUE(right_.is_full());
  EXPECT_TRUE(left_.write("hello"));
  run_turns(loop_, 5);
  EXPECT_EQ(right_log_.received, "");
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10}));
  run_until(loop_, [&] { return right_log_.received == "hello"; });
  EXPECT_TRUE(right_.is_full());
}

TEST_P(Unread, RaisedLimitsCallOnDrained) {
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10}));
  EXPECT_TRUE(right_.write(pattern(8'000'000)));
  ASSERT_TRUE(right_.is_full());
  const std::size_t queued = right_.queued();
  ASSERT_TRUE(right_.set_limits({.low = queued, .high = queued}));
  run_until(loop_, [&] { return right_log_.log == "drained "; });
  EXPECT_FALSE(right_.is_full());
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10}));
  EXPECT_TRUE(right_.is_full());
}

TEST_P(Unread, LimitDoesNotApplyAfterClose) {
  right_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(right_.write("an answer, which has it wait for the end of its peer"));
  EXPECT_TRUE(left_.write("more than may be left from now on"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  ASSERT_TRUE(right_.set_limits({.max_unread = 3}));
  right_.close();
  EXPECT_TRUE(left_.write("what is thrown away"));
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_FALSE(right_log_.error);
}

TEST_P(Unread, LimitsPersistAfterLeftoverIsConsumed) {
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 0, .max = 10, .when_full = WhenFull::drop}));
  right_log_.use = [&](Bytes bytes) { return right_log_.data_calls == 1 ? 0 : bytes.size(); };
  EXPECT_TRUE(left_.write("left"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  right_.start(right_log_);
  run_until(loop_, [&] { return right_log_.received == "left"; });
  EXPECT_FALSE(right_.write("more than ten bytes"));
}

using Wanted = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Wanted, all_kinds(), name_of);

TEST_P(Wanted, IsDeliveredOnceComplete) {
  right_log_.use = [this](Bytes bytes) {
    if (bytes.size() >= 10) return bytes.size();
    EXPECT_TRUE(right_.want(10));
    return std::size_t{1};
  };
  EXPECT_TRUE(left_.write("[123"));
  run_turns(loop_, 3);
  EXPECT_EQ(right_log_.data_calls, 1);
  EXPECT_EQ(text_of(right_.unread()), "123");
  for (const char* more : {"456", "789"}) {
    EXPECT_TRUE(left_.write(more));
    run_turns(loop_, 3);
    right_.pause();
    right_.resume();
    run_turns(loop_, 3);
    EXPECT_EQ(right_log_.data_calls, 1);
  }
  EXPECT_TRUE(left_.write("0"));
  run_until(loop_, [&] { return right_log_.received == "[1234567890"; });
  EXPECT_EQ(right_log_.data_calls, 2);
  EXPECT_TRUE(left_.write("!"));
  run_until(loop_, [&] { return right_log_.data_calls == 3; });
}

TEST_P(Wanted, MayBeSetBeforeAnyInput) {
  EXPECT_TRUE(right_.want(4));
  EXPECT_TRUE(left_.write("abc"));
  run_turns(loop_, 3);
  EXPECT_EQ(right_log_.data_calls, 0);
  EXPECT_TRUE(left_.write("d"));
  run_until(loop_, [&] { return right_log_.received == "abcd"; });
  EXPECT_EQ(right_log_.data_calls, 1);
}

TEST_P(Wanted, IsDeliveredAtOnceIfComplete) {
  right_log_.use = [this](Bytes bytes) {
    if (bytes.size() < 100) return bytes.size();
    EXPECT_TRUE(right_.want(90));
    return std::size_t{10};
  };
  EXPECT_TRUE(left_.write(std::string(100, 'x')));
  run_until(loop_, [&] { return right_log_.received.size() == 100; });
  EXPECT_EQ(right_log_.data_calls, 2);
}

TEST_P(Wanted, IsDeliveredIfCompleteOutsideCallback) {
  right_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(left_.write(std::string(100, 'x')));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  right_log_.use = nullptr;
  EXPECT_TRUE(right_.want(100));
  EXPECT_EQ(right_log_.data_calls, 1);
  run_until(loop_, [&] { return right_log_.received.size() == 100; });
  EXPECT_EQ(right_log_.data_calls, 2);
}

TEST_P(Wanted, IsDeliveredAfterEofIfComplete) {
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.want(bytes.size() > 60 ? bytes.size() - 10 : bytes.size()));
    return std::size_t{10};
  };
  EXPECT_TRUE(right_.want(1000));
  EXPECT_TRUE(left_.write(std::string(100, 'x')));
  left_.end();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_EQ(right_log_.data_calls, 5) << "of 60 bytes it has used 10, and wants 60";
}

TEST_P(Wanted, RemainsUnreadIfPeerEndsBefore) {
  std::string rest;
  right_log_.use = [](Bytes) { return std::size_t{2}; };
  right_log_.when_ended = [&] { rest = text_of(right_.unread()); };
  EXPECT_TRUE(right_.want(100));
  EXPECT_TRUE(left_.write("a part"));
  left_.end();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_EQ(right_log_.data_calls, 1);
  EXPECT_EQ(rest, "part");
  EXPECT_TRUE(right_.unread().empty());
}

TEST_P(Wanted, IsResetByNextHandler) {
  EXPECT_TRUE(right_.want(100));
  EXPECT_TRUE(left_.write("a part"));
  run_turns(loop_, 3);
  Recorder next;
  right_.start(next);
  run_until(loop_, [&] { return next.received == "a part"; });
  EXPECT_EQ(right_log_.data_calls, 0);
  right_ = Stream();
}

TEST_P(Wanted, MayBeMegabytes) {
  const std::string sent = pattern(5'000'000);
  EXPECT_TRUE(right_.want(sent.size()));
  EXPECT_TRUE(left_.write(sent));
  run_until(loop_, [&] { return right_log_.received.size() == sent.size(); });
  EXPECT_TRUE(right_log_.received == sent);
  EXPECT_EQ(right_log_.data_calls, 1);
}

}  // namespace
}  // namespace spate::testing
