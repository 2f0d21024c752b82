// Rate limits and deadlines of Streams. The tests check that nothing moves faster than allowed; the
// actual speed depends on the machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/fault.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using Rates = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Rates, all_kinds(), name_of);
using SocketRates = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, SocketRates, kinds_where(has_socket), name_of);

constexpr std::size_t kBurst = 8'000;
constexpr RateLimits kReading = {.read = {.bytes_per_second = 200'000, .burst = kBurst},
                                 .write = {}};
constexpr RateLimits kWriting = {.read = {},
                                 .write = {.bytes_per_second = 200'000, .burst = kBurst}};

std::int64_t time_for(std::size_t bytes) {
  return static_cast<std::int64_t>(bytes - kBurst) * 1'000'000'000 / 200'000;
}

TEST_P(Rates, ReadRateIsLimited) {
  const std::string sent(40'000, 'r');
  ASSERT_TRUE(right_.set_rate_limits(kReading));
  const Nanos start = loop_.now();
  EXPECT_TRUE(left_.write(sent));
  run_until(loop_, [&] { return right_log_.received.size() == sent.size(); });
  EXPECT_GE((loop_.now() - start).count(), time_for(sent.size()));
  EXPECT_GE(right_log_.data_calls, 40);
}

TEST_P(Rates, WriteRateIsLimited) {
  const std::string sent(40'000, 'w');
  ASSERT_TRUE(left_.set_rate_limits(kWriting));
  const Nanos start = loop_.now();
  EXPECT_TRUE(left_.write(sent));
  EXPECT_EQ(left_.queued(), sent.size() - kBurst);
  run_until(loop_, [&] { return right_log_.received.size() == sent.size(); });
  EXPECT_GE((loop_.now() - start).count(), time_for(sent.size()));
}

TEST_P(Rates, ApplyToMultiPartBuffers) {
  Buffer pieces;
  for (int i = 0; i < 80; ++i) {
    Buffer piece;
    EXPECT_TRUE(piece.append(std::string(300, 'p')));
    pieces.append(std::move(piece));
  }
  const std::size_t size = pieces.size();
  ASSERT_TRUE(left_.set_rate_limits(kWriting));
  const Nanos start = loop_.now();
  EXPECT_TRUE(left_.write(std::move(pieces)));
  EXPECT_EQ(left_.queued(), size - kBurst);
  run_until(loop_, [&] { return right_log_.received.size() == size; });
  EXPECT_GE((loop_.now() - start).count(), time_for(size));
}

TEST_P(SocketRates, ReadRateAppliesAfterSendFailure) {
  const std::string sent(20'000, 'b');
  ASSERT_TRUE(right_.set_rate_limits(kReading));
  const Nanos start = loop_.now();
  EXPECT_TRUE(left_.write(sent));
  run_until(loop_, [&] { return right_log_.received.size() >= kBurst; });
  FaultPlan plan;
  plan.fail_nth(SystemCall::send, 1, EPIPE);
  {
    const FaultScope scope(plan);
    EXPECT_TRUE(right_.write("x"));
  }
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.received.size(), sent.size());
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
  EXPECT_GE((loop_.now() - start).count(), time_for(sent.size()));
}

TEST_P(Rates, BytesStayInOrderAtLowRate) {
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.write(bytes.first(1)) && right_.write(bytes.subspan(1)));
    return bytes.size();
  };
  ASSERT_TRUE(right_.set_rate_limits(kWriting));
  std::string sent;
  for (int i = 0; i < 5'000; ++i) sent += std::to_string(i);
  EXPECT_TRUE(left_.write(sent));
  run_until(loop_, [&] { return left_log_.received.size() == sent.size(); });
  EXPECT_TRUE(left_log_.received == sent);
}

TEST_P(Rates, AreLiftedAtOnce) {
  const std::string sent(100'000, 'l');
  ASSERT_TRUE(left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1, .burst = 1}}));
  EXPECT_TRUE(left_.write(sent));
  EXPECT_EQ(left_.queued(), sent.size() - 1);
  ASSERT_TRUE(left_.set_rate_limits({}));
  run_until(loop_, [&] { return right_log_.received.size() == sent.size(); });
}

// Alone on its loop, it has no registration with the kernel while it is paused.
TEST_P(Rates, RateLimitedStreamKeepsLoopAlive) {
  const std::string sent(20'000, 'r');
  ASSERT_TRUE(right_.set_rate_limits(kReading));
  ASSERT_TRUE(left_.set_rate_limits(kWriting));
  EXPECT_TRUE(left_.write(sent));
  left_.end();
  const std::uint64_t before = loop_.iteration();
  EXPECT_FALSE(loop_.run());
  EXPECT_EQ(right_log_.received.size(), sent.size());
  EXPECT_EQ(right_log_.closed_calls, 1);
  EXPECT_LT(loop_.iteration() - before, 1'000u) << "and sleeps while it does";
  EXPECT_EQ(loop_.active_count(), 0);
}

// Whatever ends its rest.
TEST_P(Rates, StreamReleasesLoopAfterRateLimitPause) {
  const std::int64_t reading = loop_.active_count();
  const auto rest = [&] {
    ASSERT_TRUE(right_.set_rate_limits({.read = {.bytes_per_second = 1, .burst = 1}, .write = {}}));
    ASSERT_TRUE(left_.write("twelve bytes"));
    run_turns(loop_, 5);
  };
  rest();
  ASSERT_TRUE(right_.set_rate_limits({}));
  run_until(loop_, [&] { return right_log_.received == "twelve bytes"; });
  EXPECT_EQ(loop_.active_count(), reading);
  rest();
  right_.pause();
  EXPECT_EQ(loop_.active_count(), is_in_memory() ? 0 : reading - 1);
  right_.resume();
  run_turns(loop_, 5);
  if (!has_bare_socket()) {
    right_.abort();
  } else {
    const auto fd = right_.release();
    ASSERT_TRUE(fd);
    EXPECT_EQ(loop_.active_count(), reading - 1);
    ::close(*fd);
  }
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_P(Rates, AbortedRateLimitedStreamReleasesLoop) {
  ASSERT_TRUE(right_.set_rate_limits({.read = {.bytes_per_second = 1, .burst = 1}, .write = {}}));
  EXPECT_TRUE(left_.write("twelve bytes"));
  run_turns(loop_, 5);
  right_.abort();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_P(Rates, GroupIsSharedByItsMembers) {
  RateGroup group(kReading);
  ASSERT_TRUE(left_.join(&group) && right_.join(&group));
  const std::string sent(20'000, 'g');
  const Nanos start = loop_.now();
  EXPECT_TRUE(left_.write(sent) && right_.write(sent));
  run_until(loop_,
            [&] { return left_log_.received.size() + right_log_.received.size() == 40'000; });
  EXPECT_GE((loop_.now() - start).count(), time_for(40'000));
}

TEST_P(Rates, DestroyedGroupReleasesItsMembers) {
  auto group = std::make_unique<RateGroup>(
      RateLimits{.read = {.bytes_per_second = 100, .burst = 10}, .write = {}});
  ASSERT_TRUE(right_.join(group.get()));
  EXPECT_EQ(group->members(), 1u);
  EXPECT_TRUE(left_.write("0123456789012345678901234567890123456789"));
  run_until(loop_, [&] { return !right_log_.received.empty(); });
  group.reset();
  run_until(loop_, [&] { return right_log_.received.size() == 40; });
}

TEST_P(Rates, ClosedStreamLeavesItsGroup) {
  RateGroup group(kReading);
  ASSERT_TRUE(right_.join(&group));
  left_.abort();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(group.members(), 0u);
  EXPECT_FALSE(right_.join(&group));
  EXPECT_FALSE(right_.set_rate_limits(kReading));
}

TEST_P(Rates, QueuedDataIsSentAtRateAfterDestruction) {
  const std::string sent(20'000, 'q');
  ASSERT_TRUE(left_.set_rate_limits(kWriting));
  EXPECT_TRUE(left_.write(sent));
  left_ = Stream();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_TRUE(right_log_.received == sent);
  EXPECT_FALSE(right_log_.error);
}

TEST_P(Rates, WriteTimeoutExcludesRateLimitPauses) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 100, .burst = 8}}));
  ASSERT_TRUE(left_.set_write_timeout(1ms));
  EXPECT_TRUE(left_.write("twelve bytes"));
  run_until(loop_, [&] { return right_log_.received.size() == 12; });
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Rates, DeadlineEndsActiveConnection) {
  ASSERT_TRUE(right_.set_deadline(30ms));
  Timer talk(loop_, [this] { left_.write("x"); });
  ASSERT_TRUE(talk.start(1ms, 1ms));
  const Nanos start = loop_.now();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, Error::deadline);
  EXPECT_GE(loop_.now() - start, 30ms);
}

TEST_P(Rates, DeadlineMayBeReplacedAndRemoved) {
  ASSERT_TRUE(right_.set_deadline(1h) && right_.set_deadline(5ms));
  ASSERT_TRUE(left_.set_deadline(5ms) && left_.set_deadline(0ms));
  left_.set_half_open(true);
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, Error::deadline);
  bool later = false;
  Timer timer(loop_, [&] { later = true; });
  ASSERT_TRUE(timer.start(20ms));
  run_until(loop_, [&] { return later; });
  EXPECT_NE(left_log_.error, Error::deadline);
}

TEST_P(Rates, ReadTimeoutEndsConnectionWithoutInput) {
  ASSERT_TRUE(right_.set_read_timeout(20ms));
  const Nanos start = loop_.now();
  EXPECT_TRUE(left_.write("x"));
  right_log_.use = [this](Bytes bytes) {  // Sent bytes do not count.
    EXPECT_TRUE(right_.write("y"));
    return bytes.size();
  };
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, Error::read_timeout);
  EXPECT_GE(loop_.now() - start, 20ms);
}

TEST_P(Rates, ReadTimeoutWaitsWhileReadingIsPaused) {
  ASSERT_TRUE(right_.set_read_timeout(5ms));
  right_.pause();
  bool later = false;
  Timer timer(loop_, [&] { later = true; });
  ASSERT_TRUE(timer.start(30ms));
  run_until(loop_, [&] { return later; });
  EXPECT_EQ(right_log_.closed_calls, 0);
  right_.resume();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, Error::read_timeout);
}

TEST_P(Rates, ReadTimeoutIsRemovedByZero) {
  ASSERT_TRUE(right_.set_read_timeout(5ms));
  ASSERT_TRUE(right_.set_read_timeout(0ms));
  bool later = false;
  Timer timer(loop_, [&] { later = true; });
  ASSERT_TRUE(timer.start(30ms));
  run_until(loop_, [&] { return later; });
  EXPECT_TRUE(right_.is_open());
}

}  // namespace
}  // namespace spate::testing
