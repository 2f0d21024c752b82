// relay() and copy(): between a client and a server that are unaware of it.
#include "spate/net/relay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "base/fault.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class RelayTest : public KindTest {
 protected:
  explicit RelayTest(const LoopOptions& options = {})
      : owned_(*Loop::create(options)), loop_(*owned_) {
    auto [client, first] = std::move(*make_pair(loop_, GetParam()));
    auto [second, server] = std::move(*make_pair(loop_, GetParam()));
    client_ = std::move(client);
    first_ = std::move(first);
    second_ = std::move(second);
    server_ = std::move(server);
    for (Stream* end : {&client_, &server_}) end->set_half_open(true);
    client_.start(client_log_);
    server_.start(server_log_);
  }

  OnRelayed note() {
    return [this](const RelayResult& result) {
      EXPECT_FALSE(result_.has_value());
      result_ = result;
    };
  }
  void start(const RelayOptions& options = {}) {
    relaying_ = relay(std::move(first_), std::move(second_), note(), options);
  }
  void keep_kernel_buffers_small() {
    for (Stream* end : {&client_, &first_, &second_, &server_})
      (void)end->set_kernel_buffers(50'000, 50'000);
  }
  // A unix socket may report a reset as EOF.
  void run_until_server_is_closed() {
    server_.resume();
    server_.set_half_open(false);
    if (server_log_.log == "end ") server_.end();
    run_until(loop_, [this] { return server_log_.closed_calls == 1; });
  }
  void run_until_told() {
    run_until(loop_, [this] { return result_.has_value(); });
  }

  std::unique_ptr<Loop> owned_;
  Loop& loop_;
  Stream client_, first_, second_, server_;
  Recorder client_log_;
  Recorder server_log_;
  std::optional<RelayResult> result_;
  Relaying relaying_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, RelayTest, all_kinds(), name_of);
// Sending to a memory_pair() allocates memory.
using AllocationFreeRelayTest = RelayTest;
INSTANTIATE_TEST_SUITE_P(Kinds, AllocationFreeRelayTest,
                         kinds_where([](Kind kind) { return kind != Kind::memory; }), name_of);

TEST_P(RelayTest, BytesAreForwardedBothWaysAndCounted) {
  start();
  const std::string question = pattern(300'000);
  const std::string answer = pattern(200'000);
  client_.write(question);
  server_.write(answer);
  client_.end();
  server_.end();
  run_until_told();
  // The last bytes have left the relay, and may be in transit.
  EXPECT_FALSE(loop_.run() || loop_.has_work());
  EXPECT_TRUE(server_log_.received == question);
  EXPECT_TRUE(client_log_.received == answer);
  EXPECT_FALSE(result_->error);
  EXPECT_EQ(result_->forth, question.size());
  EXPECT_EQ(result_->back, answer.size());
}

TEST_P(RelayTest, EndOfOneSideIsForwardedWhileOtherContinues) {
  start();
  client_.write("question");
  client_.end();
  run_until(loop_, [this] { return server_log_.log == "end "; });
  EXPECT_EQ(server_log_.received, "question");
  run_turns(loop_, 5);
  EXPECT_FALSE(result_.has_value());
  server_.write("answer");
  server_.end();
  run_until_told();
  EXPECT_FALSE(loop_.run() || loop_.has_work());
  EXPECT_EQ(client_log_.received, "answer");
  EXPECT_FALSE(result_->error);
}

TEST_P(RelayTest, EarlierInputIsForwarded) {
  client_.write("early");
  Recorder idle;
  idle.use = [](Bytes) { return 0; };
  first_.start(idle);
  run_until(loop_, [&idle] { return idle.data_calls > 0; });
  first_.pause();
  start();
  run_until(loop_, [this] { return server_log_.received == "early"; });
}

TEST_P(AllocationFreeRelayTest, OutOfMemoryForRateLimitPauseEndsIt) {
  ASSERT_TRUE(first_.set_rate_limits({.read = {.bytes_per_second = 1'000}}));
  start();
  Timer warm_up(loop_, [] {});
  warm_up.feed();  // The loop has room for an event.
  run_turns(loop_, 1);
  client_.write(pattern(10'000));
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  run_turns(loop_, 20);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error, std::errc::not_enough_memory);
}

TEST_P(RelayTest, SlowReaderAppliesBackPressureToOtherSide) {
  constexpr std::size_t kHigh = 20'000;
  keep_kernel_buffers_small();
  ASSERT_TRUE(second_.set_limits({.low = 1'000, .high = kHigh}));
  server_.pause();
  start();
  const std::string sent = pattern(8'000'000);
  client_.write(sent);
  client_.end();
  std::size_t left = 0;
  do {
    left = client_.queued();
    run_turns(loop_, 10);
  } while (client_.queued() != left);
  EXPECT_GT(left, 7'000'000);
  server_.resume();
  run_until(loop_, [this] { return server_log_.log == "end "; });
  EXPECT_TRUE(server_log_.received == sent);
  server_.end();
  run_until_told();
  EXPECT_EQ(result_->forth, sent.size());
}

TEST_P(RelayTest, ResetIsForwarded) {
  start();
  client_.write("x");
  run_until(loop_, [this] { return server_log_.received == "x"; });
  client_.pause();
  server_.write("unread");  // Unread input makes a unix socket report a reset, too.
  run_turns(loop_, 5);
  client_.abort();
  run_until_told();
  EXPECT_EQ(result_->error, std::errc::connection_reset);
  EXPECT_EQ(result_->forth, 1);
  run_until_server_is_closed();
  if (knows_resets()) EXPECT_TRUE(is_reset(server_log_.error)) << server_log_.error;
}

TEST_P(RelayTest, FailedSideEndsOther) {
  client_.abort();
  do {
    run_turns(loop_, 5);
  } while (first_.write("into the void"));
  EXPECT_FALSE(first_.is_writable());
  start();
  run_until_told();
  EXPECT_TRUE(result_->error);
  run_until_server_is_closed();
}

TEST_P(RelayTest, DroppedDataIsReportedAsError) {
  ASSERT_TRUE(second_.set_limits({.low = 0, .high = 10, .max = 10, .when_full = WhenFull::drop}));
  server_.pause();
  start();
  client_.write(pattern(2'000'000));
  run_until_told();
  EXPECT_EQ(result_->error, Error::queue_full);
  run_until_server_is_closed();
}

TEST_P(RelayTest, CancelClosesBothSidesWithoutCallback) {
  start();
  client_.write("last");
  run_until(loop_, [this] { return server_log_.received == "last"; });
  relaying_.cancel();
  client_.set_half_open(false);
  server_.set_half_open(false);
  run_until(loop_,
            [this] { return client_log_.closed_calls == 1 && server_log_.closed_calls == 1; });
  EXPECT_FALSE(server_log_.error);
  EXPECT_FALSE(result_.has_value());
  EXPECT_FALSE(loop_.run() || loop_.has_work());
}

TEST_P(RelayTest, AbortResetsBothSidesWithoutCallback) {
  start();
  client_.write("part");
  run_until(loop_, [this] { return server_log_.received == "part"; });
  relaying_.abort();
  client_.set_half_open(false);
  server_.set_half_open(false);
  run_until(loop_,
            [this] { return client_log_.closed_calls == 1 && server_log_.closed_calls == 1; });
  if (knows_resets()) {
    EXPECT_TRUE(is_reset(client_log_.error)) << client_log_.error;
    EXPECT_TRUE(is_reset(server_log_.error)) << server_log_.error;
  }
  EXPECT_FALSE(result_.has_value());
  relaying_.abort();  // There is none any more.
  EXPECT_FALSE(loop_.run() || loop_.has_work());
}

TEST_P(RelayTest, CallbackMayDestroyRelay) {
  bool told = false;
  relaying_ = relay(std::move(first_), std::move(second_), [&](const RelayResult&) {
    told = true;
    relaying_.cancel();
  });
  client_.end();
  server_.end();
  run_until(loop_, [&told] { return told; });
}

TEST_P(RelayTest, LoopMayBeDestroyedFirst) {
  start();
  client_.write("x");
  owned_.reset();
  relaying_.cancel();
  EXPECT_FALSE(result_.has_value());
}

TEST_P(RelayTest, CopyForwardsOneWayAndClosesBothSidesAfterwards) {
  relaying_ = copy(std::move(first_), std::move(second_), note());
  const std::string sent = pattern(3'000'000);
  server_.write("nobody reads this");
  client_.write(sent);
  client_.end();
  run_until(loop_, [this] { return server_log_.log == "end "; });
  EXPECT_TRUE(server_log_.received == sent);
  server_.end();
  run_until_told();
  EXPECT_FALSE(result_->error);
  EXPECT_EQ(result_->forth, sent.size());
  EXPECT_EQ(result_->back, 0);
  EXPECT_EQ(client_log_.received, "");
}

TEST_P(RelayTest, CopyIgnoresEofOfItsTarget) {
  relaying_ = copy(std::move(first_), std::move(second_), note());
  server_.end();
  run_turns(loop_, 10);
  client_.write("still");
  run_until(loop_, [this] { return server_log_.received == "still"; });
  EXPECT_FALSE(result_.has_value());
}

// From one pipe to another; the other ends are bare descriptors.
class RelayPipes : public ::testing::Test {
 protected:
  RelayPipes() {
    EXPECT_EQ(::pipe(from_), 0);
    EXPECT_EQ(::pipe(to_), 0);
    copying_ = copy(*Stream::adopt(*loop_, from_[0]), *Stream::adopt(*loop_, to_[1]),
                    [this](const RelayResult& told) { result_ = told; });
  }

  const std::unique_ptr<Loop> loop_ = *Loop::create();
  int from_[2];
  int to_[2];
  std::optional<RelayResult> result_;
  Relaying copying_;
};

TEST_F(RelayPipes, CopyFromOnePipeToAnother) {
  ASSERT_EQ(::write(from_[1], "through", 7), 7);
  ::close(from_[1]);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  ASSERT_TRUE(result_.has_value());
  EXPECT_FALSE(result_->error);
  EXPECT_EQ(result_->forth, 7);
  char bytes[16];
  EXPECT_EQ(::read(to_[0], bytes, sizeof(bytes)), 7);
  EXPECT_EQ(::read(to_[0], bytes, sizeof(bytes)), 0);
  ::close(to_[0]);
}

TEST_F(RelayPipes, CopyFailsWhenItsTargetIsClosed) {
  ::close(to_[0]);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error, std::errc::broken_pipe);
  ::close(from_[1]);
}

// ---- idle relays, on a clock that the test moves

class TimedRelay : protected OwnClock, public RelayTest {
 protected:
  TimedRelay() : RelayTest({.clock = &clock_}) {}

  // In small steps: a loop that could not run for a while does not time connections out.
  void pass(Nanos time) {
    for (Nanos passed{0}; passed < time; passed += 1ms) {
      clock_.advance(1ms);
      run_turns(loop_, 2);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, TimedRelay, all_kinds(), name_of);
// TCP also depends on the kernel's clock. Over TLS on a unix socket, room for one write takes four
// reads.
using SlowTimedRelay = TimedRelay;
INSTANTIATE_TEST_SUITE_P(Kinds, SlowTimedRelay,
                         ::testing::Values(Kind::memory, Kind::local, Kind::tls_memory), name_of);

TEST_P(TimedRelay, IdleRelayTimesOut) {
  start({.idle_timeout = 1s});
  for (int i = 0; i < 10; ++i) {
    pass(900ms);
    EXPECT_FALSE(result_.has_value());
    (i % 2 == 0 ? client_ : server_).write("x");
    turn_until(loop_, [&] {
      return client_log_.received.size() + server_log_.received.size() == std::size_t(i) + 1;
    });
  }
  pass(999ms);
  EXPECT_FALSE(result_.has_value());
  pass(252ms);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error, Error::idle_timeout);
  EXPECT_EQ(result_->forth, 5);
  EXPECT_EQ(result_->back, 5);
  turn_until(loop_, [this] { return !server_log_.log.empty(); });
}

// Discarded input of `to` does not count.
TEST_P(TimedRelay, CopyIsIdleWhileOnlyItsTargetSends) {
  relaying_ = copy(std::move(first_), std::move(second_), note(), {.idle_timeout = 1s});
  pass(900ms);
  client_.write("x");
  turn_until(loop_, [this] { return server_log_.received == "x"; });
  for (int i = 0; i < 9; ++i) {
    server_.write("x");
    pass(100ms);
    EXPECT_FALSE(result_.has_value());
  }
  pass(400ms);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error, Error::idle_timeout);
  EXPECT_EQ(result_->forth, 1);
  EXPECT_EQ(result_->back, 0);
}

// The end of a side is passed on, and does not count.
TEST_P(TimedRelay, IdleTimeoutAppliesAfterEnd) {
  start({.idle_timeout = 1s});
  pass(900ms);
  client_.end();
  turn_until(loop_, [this] { return server_log_.log == "end "; });
  EXPECT_FALSE(result_.has_value());
  pass(400ms);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error, Error::idle_timeout);
}

TEST_P(TimedRelay, AcceptsAnyIdleTimeout) {
  start({.idle_timeout = GetParam() == Kind::memory ? Nanos::min() : Nanos::max()});
  clock_.advance(24h * 365);
  run_turns(loop_, 20);
  EXPECT_FALSE(result_.has_value());
  client_.write("x");
  turn_until(loop_, [this] { return server_log_.received == "x"; });
}

TEST_P(SlowTimedRelay, SlowReaderIsNotIdle) {
  keep_kernel_buffers_small();
  ASSERT_TRUE(second_.set_limits({.low = 0, .high = 300'000}));
  server_.pause();
  start({.idle_timeout = 200ms});
  const std::string sent = pattern(1'000'000);
  client_.write(sent);
  server_log_.use = [this](Bytes bytes) {
    server_.pause();
    return bytes.size();
  };
  while (server_log_.received.size() < sent.size() && !result_.has_value()) {
    server_.resume();
    pass(100ms);
  }
  EXPECT_FALSE(result_.has_value());
  EXPECT_TRUE(server_log_.received == sent);
}

TEST_P(SlowTimedRelay, ReaderThatStopsIsIdleOnceQueuesAreFull) {
  keep_kernel_buffers_small();
  ASSERT_TRUE(second_.set_limits({.low = 0, .high = 300'000}));
  server_.pause();
  start({.idle_timeout = 200ms});
  EXPECT_TRUE(client_.write(pattern(3'000'000)));
  for (int i = 0; i < 100 && !result_.has_value(); ++i) pass(100ms);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error, Error::idle_timeout);
  EXPECT_LT(result_->forth, 3'000'000u);
}

}  // namespace
}  // namespace spate::testing
