// Timeouts, deadlines and rate limits, to the millisecond, on a clock that the test moves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/error.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

using Deadlines = TimedStreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Deadlines, all_kinds(), name_of);
// Only a memory_pair() has room for a known number of bytes.
using MemoryPairDeadlines = TimedStreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, MemoryPairDeadlines, ::testing::Values(Kind::memory), name_of);
using InMemoryDeadlines = TimedStreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, InMemoryDeadlines, kinds_where(is_in_memory), name_of);
using SocketDeadlines = TimedStreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, SocketDeadlines, kinds_where(has_socket), name_of);
using BareSocketDeadlines = TimedStreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, BareSocketDeadlines, kinds_where(has_bare_socket), name_of);

// ---- durations

TEST_P(Deadlines, AcceptAnyDuration) {
  for (const Nanos span : {Nanos::max(), kForever, kForever + Nanos{1}, Nanos{INT64_MAX - 1}}) {
    EXPECT_TRUE(left_.set_idle_timeout(span));
    EXPECT_TRUE(left_.set_read_timeout(span));
    EXPECT_TRUE(left_.set_write_timeout(span));
    EXPECT_TRUE(left_.set_deadline(span));
    EXPECT_TRUE(left_.write("x"));
    pass(24h * 20);
    ASSERT_EQ(left_log_.log, "");
  }
}

TEST_P(Deadlines, NegativeDeadlinesExpireAtOnce) {
  EXPECT_TRUE(left_.set_deadline(Nanos::min()));
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::deadline);
  Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
  Recorder log;
  pair->first.start(log);
  pair->first.set_idle_timeout(-1s);
  pass(kTicks);
  turn_until([&] { return log.closed_calls == 1; });
  EXPECT_EQ(log.error, Error::idle_timeout);
}

// The first deadline of a loop needs memory; its failure is reported.
TEST_P(Deadlines, OutOfMemoryIsReported) {
  const auto setters = {+[](Stream& stream) { return stream.set_idle_timeout(5s); },
                        +[](Stream& stream) { return stream.set_deadline(5s); },
                        +[](Stream& stream) { return stream.set_write_timeout(5s); }};
  for (const auto set : setters) {
    const std::unique_ptr<Loop> loop = must(Loop::create());
    auto [one, two] = must(make_pair(*loop, GetParam()));
    Recorder log;
    one.start(log);
    EXPECT_TRUE(one.set_read_timeout(0s));  // That much there is.
    while (!one.is_full()) ASSERT_TRUE(one.write(std::string(100'000, 'x')));
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
    {
      const FaultScope scope(plan);
      EXPECT_FALSE(set(one));
    }
    EXPECT_EQ(plan.failures(SystemCall::allocate), 1u);
    EXPECT_TRUE(set(one));
  }
}

TEST_P(Deadlines, ZeroRemovesDeadline) {
  EXPECT_TRUE(left_.set_deadline(5s));
  pass(4s);
  EXPECT_TRUE(left_.set_deadline(0s));
  pass(60s);
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Deadlines, MayBeSetBeforeStart) {
  Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
  EXPECT_TRUE(pair->first.set_read_timeout(5s));
  pass(60s);
  Recorder log;
  pair->first.start(log);
  pass(5s - 1ns);
  EXPECT_EQ(log.log, "");
  pass(1ns);
  turn_until([&] { return log.closed_calls == 1; });
  EXPECT_EQ(log.error, Error::read_timeout);
}

TEST_P(Deadlines, ReadTimeoutIsNotExtendedByAnotherHandler) {
  EXPECT_TRUE(left_.set_read_timeout(5s));
  for (int i = 0; i < 2; ++i) {
    pass(2s);
    left_.start(left_log_);
    EXPECT_TRUE(left_.set_rate_limits({}));
  }
  pass(1s);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::read_timeout);
}

TEST_P(Deadlines, ReadTimeoutCountsAfterLimitsAreLifted) {
  right_.pause();
  EXPECT_TRUE(left_.set_limits({.low = 5, .high = 10, .pause_reading = true}));
  EXPECT_TRUE(left_.write(std::string(20 << 20, 'x')));
  EXPECT_TRUE(left_.is_full());
  EXPECT_TRUE(left_.set_read_timeout(5s));
  pass(60s);
  EXPECT_EQ(left_log_.log, "");
  EXPECT_TRUE(left_.set_limits({.low = 5, .high = 10}));
  pass(5s - 1ns);
  EXPECT_EQ(left_log_.log, "");
  pass(1ns);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::read_timeout);
}

// ---- never early

TEST_P(Deadlines, AreNotNanosecondEarly) {
  EXPECT_TRUE(left_.set_deadline(5s));
  pass(5s - 1ns);
  EXPECT_EQ(left_log_.log, "");
  pass(1ns);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::deadline);
}

TEST_P(Deadlines, IdleTimeoutsAreNotEarlyWithinMillisecond) {
  for (int i = 0; i < 50; ++i) {
    clock_.advance(37'123ns * i);
    loop_.update_now();
    Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
    Recorder log;
    pair->first.start(log);
    pair->first.set_idle_timeout(10ms);
    pass(10ms - 1ns);
    ASSERT_EQ(log.log, "") << i;
    pass(kTicks);
    turn_until([&] { return log.closed_calls == 1; });
  }
}

// Each deadline is in a heap, from whose middle others are removed.
TEST_P(InMemoryDeadlines, ManyDeadlinesAreExactThoughOthersAreRemoved) {
  struct Peer {
    Stream stream;
    Stream other;
    Recorder log;
    int due = 0;  // In milliseconds.
  };
  constexpr int kLatest = 500;
  std::mt19937 random(3);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 400; ++i) {
    Result<std::pair<Stream, Stream>> pair = Stream::memory_pair(loop_);
    auto& peer = *peers.emplace_back(std::make_unique<Peer>());
    peer.stream = std::move(pair->first);
    peer.other = std::move(pair->second);
    peer.stream.start(peer.log);
    peer.due = static_cast<int>(random() % kLatest);
    EXPECT_TRUE(peer.stream.set_deadline(peer.due * 1ms + 1ns));
  }
  for (int i = 0; i < 250; ++i) {
    Peer& peer = *peers[random() % peers.size()];
    if (i % 5 != 0) peer.stream.abort();
    peer.due = static_cast<int>(static_cast<unsigned>(peer.due) * (random() % 100) / 100);
    EXPECT_TRUE(peer.stream.set_deadline(peer.due * 1ms + 1ns));
  }
  std::erase_if(peers, [](const auto& peer) { return !peer->stream.is_open(); });
  ASSERT_GT(peers.size(), 100u);
  for (int now = 0; now <= kLatest; ++now) {
    for (const auto& peer : peers) ASSERT_EQ(peer->log.closed_calls, peer->due < now ? 1 : 0);
    clock_.advance(1ms);
    run_turns(loop_, 3);
  }
}

TEST_P(Deadlines, BeginWhenSet) {
  right_.pause();
  EXPECT_TRUE(left_.write(pattern(8'000'000)));
  turns();
  const FullKernel full;
  pass(1h);
  right_.set_idle_timeout(10s);
  EXPECT_TRUE(left_.set_write_timeout(10s));
  pass(10s - 1ns);
  EXPECT_EQ(left_log_.log + right_log_.log, "");
  pass(kTicks);
  turn_until([&] { return left_log_.closed_calls == 1 && right_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::write_timeout);
  EXPECT_EQ(right_log_.error, Error::idle_timeout);
}

TEST_P(Deadlines, WriteTimeoutAppliesToMovedBuffers) {
  right_.pause();
  EXPECT_TRUE(left_.set_write_timeout(10s));
  pass(1h);
  Buffer buffer;
  EXPECT_TRUE(buffer.append(pattern(8'000'000)) && left_.write(std::move(buffer)));
  const FullKernel full;
  pass(10s - 1ns);
  EXPECT_EQ(left_log_.log, "");
  pass(1ns);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::write_timeout);
}

TEST_P(MemoryPairDeadlines, WriteTimeoutBeginsWithFirstQueuedByte) {
  for (const bool is_copied : {true, false}) {
    Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
    Recorder log;
    pair->first.start(log);
    EXPECT_TRUE(pair->first.set_write_timeout(10s));
    EXPECT_TRUE(pair->first.write(pattern(64 * 1024)));  // As much as there is room for.
    ASSERT_EQ(pair->first.queued(), 0u);
    pass(1h);
    Buffer buffer;
    EXPECT_TRUE(buffer.append(std::string_view("waits")));
    EXPECT_TRUE(is_copied ? pair->first.write("waits") : pair->first.write(std::move(buffer)));
    pass(10s - 1ns);
    EXPECT_EQ(log.log, "");
    pass(1ns);
    turn_until([&] { return log.closed_calls == 1; });
    EXPECT_EQ(log.error, Error::write_timeout);
  }
}

TEST_P(Deadlines, ReadTimeoutExcludesPausesForFullQueue) {
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10, .pause_reading = true}));
  EXPECT_TRUE(right_.set_read_timeout(10s));
  left_.pause();
  EXPECT_TRUE(right_.write(pattern(8'000'000)));
  pass(1h);
  EXPECT_EQ(right_log_.log, "");
  left_.resume();
  turn_until([&] { return right_log_.log == "drained "; });
  pass(10s - 1ns);
  EXPECT_EQ(right_log_.log, "drained ");
  pass(1ns);
  turn_until([&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, Error::read_timeout);
}

TEST_P(Deadlines, ExpiryInsideCallbackIsReportedAfterIt) {
  EXPECT_TRUE(left_.set_deadline(5s));
  left_log_.use = [this](Bytes bytes) {
    pass(6s);
    EXPECT_EQ(left_log_.log, "");
    return bytes.size();
  };
  EXPECT_TRUE(right_.write("x"));
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.received, "x");
  EXPECT_EQ(left_log_.error, Error::deadline);
}

// ---- idle connections

TEST_P(Deadlines, SendingServerIsNotIdle) {
  left_.set_idle_timeout(10s);
  for (int i = 0; i < 20; ++i) {
    pass(9s);
    ASSERT_TRUE(left_.write("tick"));
    turns();
  }
  EXPECT_EQ(left_log_.log, "");
  pass(10s + kTicks);
  turn_until([&] { return left_log_.closed_calls == 1; });
}

// The process was stopped for a while; then everything is due at once.
TEST_P(Deadlines, PendingInputIsReadBeforeIdleTimeoutIsChecked) {
  constexpr std::size_t kConnections = 700;  // More than one wait reports.
  std::vector<Result<std::pair<Stream, Stream>>> pairs;
  std::vector<std::unique_ptr<Recorder>> logs;
  for (std::size_t i = 0; i < kConnections; ++i) {
    pairs.push_back(Stream::socket_pair(loop_));
    ASSERT_TRUE(pairs.back());
    logs.push_back(std::make_unique<Recorder>());
    pairs.back()->first.start(*logs.back());
    if (i % 2 == 0) pairs.back()->first.set_idle_timeout(200ms);
    if (i % 2 == 1) EXPECT_TRUE(pairs.back()->first.set_read_timeout(200ms));
  }
  turns();
  for (Result<std::pair<Stream, Stream>>& pair : pairs) EXPECT_TRUE(pair->second.write("ping"));
  pass(10s);
  for (const auto& log : logs) {
    ASSERT_EQ(log->received, "ping");
    ASSERT_EQ(log->log, "");
  }
}

TEST_P(Deadlines, PendingDataIsSentBeforeWriteTimeoutIsChecked) {
  right_.pause();
  EXPECT_TRUE(left_.write(pattern(8'000'000)));
  turns();
  EXPECT_TRUE(left_.set_write_timeout(10s));
  right_.resume();
  clock_.advance(11s);
  turn_until([&] { return right_log_.received.size() == 8'000'000; });
  EXPECT_EQ(left_log_.closed_calls, 0);
}

TEST_P(Deadlines, LingerTimeoutBeginsWithClose) {
  right_.pause();
  const std::string sent = pattern(8'000'000);
  EXPECT_TRUE(left_.write(sent));
  turns();
  pass(1h);
  left_.close();
  pass(5s);
  EXPECT_EQ(left_log_.log, "");
  right_.resume();
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_FALSE(left_log_.error);
  EXPECT_TRUE(right_log_.received == sent);
}

// ---- closed streams keep their deadline

TEST_P(Deadlines, ApplyAfterCloseWhilePeerReadsSlowly) {
  std::size_t taken = 0;
  right_log_.use = [&](Bytes bytes) {
    taken += bytes.size();
    if (taken >= 1'000'000) taken = 0, right_.pause();
    return bytes.size();
  };
  EXPECT_TRUE(left_.set_deadline(60s));
  EXPECT_TRUE(left_.write(pattern(30'000'000)));
  left_.close();
  int seconds = 0;
  for (; left_log_.closed_calls == 0 && seconds < 300; seconds += 5) {
    right_.resume();
    pass(5s);
  }
  EXPECT_LE(seconds, 65);
  EXPECT_EQ(left_log_.error, Error::deadline);
}

TEST_P(Deadlines, CloseWithoutPendingOutputDoesNotAwaitPeer) {
  right_.set_half_open(true);
  left_log_.use = [this](Bytes bytes) {
    left_.close();
    return bytes.size();
  };
  EXPECT_TRUE(right_.write("go"));
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_FALSE(left_log_.error);
}

TEST_P(Deadlines, CloseOutsideCallbackWithoutOutputDoesNotAwaitPeer) {
  right_.set_half_open(true);
  left_.close();
  EXPECT_EQ(left_log_.log, "") << "not inside the call";
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_FALSE(left_log_.error);
}

TEST_P(Deadlines, UnstartedStreamDetectsEndOfFileAfterClose) {
  Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
  Recorder log;
  pair->second.start(log);
  EXPECT_TRUE(pair->first.write("bye"));
  pair->first.close();
  turn_until([&] { return log.closed_calls == 1; });
  EXPECT_EQ(log.received, "bye");
  turn_until([&] { return !pair->first.is_open(); });
}

TEST_P(Deadlines, WriteTimeoutAppliesAfterClose) {
  right_.pause();
  EXPECT_TRUE(left_.set_write_timeout(3s));
  EXPECT_TRUE(left_.write(pattern(8'000'000)));
  left_.close();
  const FullKernel full;
  pass(3s);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::write_timeout);
}

TEST_P(BareSocketDeadlines, ReleasedStreamDoesNotPassItsDeadlinesOn) {
  EXPECT_TRUE(left_.set_deadline(5s));
  left_.set_idle_timeout(5s);
  auto fd = left_.release();
  ASSERT_TRUE(fd);
  left_ = Stream();
  left_ = std::move(*Stream::adopt(loop_, *fd));  // Very likely at the same address.
  Recorder log;
  left_.start(log);
  pass(60s);
  EXPECT_EQ(log.log, "");
}

// ---- pauses due to rate limits

TEST_P(Deadlines, RateLimitedSendingIsNotIdle) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 10, .burst = 800}}));
  left_.set_idle_timeout(1s);
  EXPECT_TRUE(left_.set_write_timeout(1s));
  EXPECT_TRUE(left_.write(pattern(1'600)));
  for (int i = 0; i < 100 && right_log_.received.size() < 1'600; ++i) {
    pass(1s);
    ASSERT_EQ(left_log_.log, "");
  }
  EXPECT_EQ(right_log_.received.size(), 1'600u);
}

TEST_P(Deadlines, RateLimitedReadingIsNotIdle) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {.bytes_per_second = 10, .burst = 80}, .write = {}}));
  left_.set_idle_timeout(500ms);
  EXPECT_TRUE(right_.write(pattern(200)));
  for (int i = 0; i < 200 && left_log_.received.size() < 200; ++i) {
    pass(100ms);
    ASSERT_EQ(left_log_.log, "");
  }
  EXPECT_EQ(left_log_.received.size(), 200u);
}

TEST_P(Deadlines, ShorterRateLimitPauseEndsFirst) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {.bytes_per_second = 1, .burst = 800},
                                     .write = {.bytes_per_second = 1'000, .burst = 800}}));
  EXPECT_TRUE(right_.write(pattern(2'000)));
  turns();
  EXPECT_TRUE(left_.write(pattern(2'000)));
  for (int i = 0; i < 20; ++i) pass(100ms);
  EXPECT_EQ(left_log_.received.size(), 800u);
  EXPECT_EQ(right_log_.received.size(), 2'000u);
}

TEST_P(SocketDeadlines, WriteTimeoutRestartsAfterRateLimitPause) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 10, .burst = 80}}));
  EXPECT_TRUE(left_.set_write_timeout(500ms));
  EXPECT_TRUE(left_.write(pattern(200)));
  turns();
  EXPECT_EQ(left_.queued(), 120u);
  FaultPlan plan;
  plan.fail_nth(SystemCall::send, 1, EAGAIN, 1'000'000);
  const FaultScope scope(plan);
  pass(1s);
  pass(500ms - 1ns);
  EXPECT_EQ(left_log_.log, "");
  pass(1ns);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::write_timeout);
}

TEST_P(Deadlines, ClosingStreamUnderRateLimitLosesNothing) {
  ASSERT_TRUE(
      left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1'000, .burst = 160'000}}));
  const std::string sent = pattern(200'000);
  EXPECT_TRUE(left_.write(sent));
  left_.close();
  for (int i = 0; i < 100 && left_log_.closed_calls == 0; ++i) pass(1s);
  EXPECT_FALSE(left_log_.error);
  EXPECT_TRUE(right_log_.received == sent);
}

TEST_P(Deadlines, DestroyedStreamUnderRateLimitLosesNothing) {
  ASSERT_TRUE(
      left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1'000, .burst = 160'000}}));
  const std::string sent = pattern(200'000);
  EXPECT_TRUE(left_.write(sent));
  left_ = Stream();
  for (int i = 0; i < 100 && right_log_.closed_calls == 0; ++i) pass(1s);
  EXPECT_FALSE(right_log_.error);
  EXPECT_TRUE(right_log_.received == sent);
}

TEST_P(Deadlines, DiscardedInputOfClosingStreamIsNotRateLimited) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {.bytes_per_second = 10, .burst = 80}, .write = {}}));
  right_.set_half_open(true);
  EXPECT_TRUE(left_.write("bye") && right_.write(pattern(8'000'000)));
  turns();
  EXPECT_EQ(left_log_.received.size(), 80u);
  left_.close();
  right_.end();
  turn_until([&] { return left_log_.closed_calls == 1 && right_log_.closed_calls == 1; });
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

// The scripted clock begins a second after the machine has.
TEST_P(Deadlines, RateLimitBurstIsAvailableFromStart) {
  ASSERT_TRUE(
      left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1'000, .burst = 160'000}}));
  EXPECT_TRUE(left_.write(pattern(160'000)));
  turn_until([&] { return right_log_.received.size() == 160'000; });
}

TEST_P(Deadlines, RaisedLimitsOfRateGroupWakeItsMembers) {
  RateGroup group({.read = {}, .write = {.bytes_per_second = 1, .burst = 8}});
  ASSERT_TRUE(left_.join(&group));
  EXPECT_TRUE(left_.write(pattern(1'000)));
  turns();
  EXPECT_EQ(right_log_.received.size(), 8u);
  group.set_limits({});
  turn_until([&] { return right_log_.received.size() == 1'000; });
}

TEST_P(Deadlines, DestroyedRateGroupWakesItsMembers) {
  auto group = std::make_unique<RateGroup>(
      RateLimits{.read = {}, .write = {.bytes_per_second = 1, .burst = 8}});
  ASSERT_TRUE(left_.join(group.get()));
  EXPECT_TRUE(left_.write(pattern(1'000)));
  turns();
  group.reset();
  turn_until([&] { return right_log_.received.size() == 1'000; });
}

TEST_P(BareSocketDeadlines, RateLimitPauseOfReleasedStreamEndsWithoutCallback) {
  ASSERT_TRUE(left_.set_rate_limits({.read = {.bytes_per_second = 10, .burst = 80}, .write = {}}));
  EXPECT_TRUE(right_.write(pattern(200)));
  turn_until([&] { return left_log_.received.size() == 80; });
  turns();
  const auto fd = left_.release();
  ASSERT_TRUE(fd);
  pass(60s);  // Its handle still exists.
  EXPECT_EQ(left_log_.received.size(), 80u);
  EXPECT_EQ(left_log_.log, "");
  ::close(*fd);
}

TEST_P(BareSocketDeadlines, ReleasedStreamsLeaveTheirGroup) {
  RateGroup group({});
  ASSERT_TRUE(left_.join(&group));
  ASSERT_EQ(group.members(), 1u);
  const auto fd = left_.release();
  ASSERT_TRUE(fd);
  EXPECT_EQ(group.members(), 0u);
  ::close(*fd);
}

}  // namespace
}  // namespace spate::testing
