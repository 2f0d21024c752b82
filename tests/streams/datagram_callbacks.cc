// Datagram: its callbacks, which may destroy, replace and pause it.
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "streams/datagram_harness.h"

namespace spate::testing {
namespace {

TEST_F(DatagramTest, MayBeDestroyedInsideItsCallback) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address to = receiver.local_address();
  receiver.start(log_);
  log_.then = [&] { const Datagram gone = std::move(receiver); };
  sender.send(bytes_of("1"), to);
  sender.send(bytes_of("2"), to);
  run_until(loop_, [&] { return log_.batches == 1; });
  EXPECT_FALSE(loop_.run(Run::no_wait));
}

TEST_F(DatagramTest, IsClosedAtOnceWhenItIsDestroyedInsideItsCallback) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address at = receiver.local_address();
  receiver.start(log_);
  bool is_free = false;
  log_.then = [&] {
    receiver = Datagram();
    is_free = Datagram::create(loop_, at).has_value();
  };
  sender.send(bytes_of("1"), at);
  run_until(loop_, [&] { return log_.batches == 1; });
  EXPECT_TRUE(is_free);
}

TEST_F(DatagramTest, MayBeDestroyedInsideItsCallbackAfterNestedRun) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address to = receiver.local_address();
  receiver.start(log_);
  log_.then = [&] {
    if (log_.batches > 1) return;
    sender.send(bytes_of("inner"), to);
    run_until(loop_, [&] { return log_.batches == 2; });
    receiver = Datagram();
    run_turns(loop_, 3);
  };
  sender.send(bytes_of("outer"), to);
  run_until(loop_, [&] { return log_.batches == 2; });
  run_turns(loop_, 3);
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"outer", "inner"}));
}

TEST_F(DatagramTest, MayBeDestroyedInNestedCallback) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address to = receiver.local_address();
  receiver.start(log_);
  int depth = 0;
  log_.then = [&] {
    if (++depth == 3) return receiver = Datagram(), void();
    sender.send(bytes_of("deeper"), to);
    run_until(loop_, [&] { return depth == 3; });
  };
  sender.send(bytes_of("first"), to);
  run_until(loop_, [&] { return depth == 3; });
  EXPECT_EQ(log_.batches, 3);
  EXPECT_EQ(receiver.fd(), -1);
}

// With one batch for each loop, the inner callback's packets would replace the outer one's.
TEST_F(DatagramTest, PacketsStayValidWhileTheirCallbackRunsLoop) {
  Datagram outer = open();
  Datagram inner = open();
  Datagram one = open();
  Datagram two = open();
  Collector inner_log;
  outer.start(log_);
  inner.start(inner_log);
  log_.look = [&](std::span<const Packet> packets) {
    two.send(bytes_of("SECRET"), inner.local_address());
    run_until(loop_, [&] { return inner_log.batches == 1; });
    ASSERT_EQ(packets.size(), 1u);
    EXPECT_EQ(text_of(packets[0].bytes), "mine");
    EXPECT_EQ(packets[0].peer, one.local_address());
  };
  one.send(bytes_of("mine"), outer.local_address());
  run_until(loop_, [&] { return log_.batches == 1; });
  EXPECT_EQ(inner_log.texts, std::vector<std::string>{"SECRET"});
  EXPECT_EQ(inner_log.all[0].peer, two.local_address());
}

TEST_F(DatagramTest, CallsLastHandler) {
  Datagram receiver = open();
  Datagram sender = open();
  Collector second;
  receiver.start(log_);
  receiver.start(second);
  sender.send(bytes_of("x"), receiver.local_address());
  run_until(loop_, [&] { return second.batches == 1; });
  EXPECT_EQ(log_.batches, 0);
}

TEST_F(DatagramTest, CallbacksMayReplaceThemselvesAndCloseSocket) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address to = receiver.local_address();
  std::string heard;
  const auto token = std::make_shared<int>();
  const auto say = [&](const char* text) { EXPECT_FALSE(sender.send(bytes_of(text), to)); };
  EXPECT_FALSE(receiver.start({.on_packets = [&, token](std::span<const Packet> packets) {
    EXPECT_FALSE(receiver.start({.on_packets = [&, token](std::span<const Packet> more) {
      receiver = Datagram();
      heard += text_of(more[0].bytes);
      EXPECT_EQ(token.use_count(), 2);
    }}));
    heard += text_of(packets[0].bytes);
    EXPECT_EQ(token.use_count(), 3);
  }}));
  say("a");
  run_until(loop_, [&] { return heard == "a"; });
  say("b");
  run_until(loop_, [&] { return heard == "ab"; });
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(DatagramTest, DiscardsPacketsWithoutCallback) {
  Datagram receiver = open();
  Datagram sender = open();
  EXPECT_FALSE(receiver.start(DatagramCallbacks{}));
  EXPECT_FALSE(sender.send(bytes_of("x"), receiver.local_address()));
  run_turns(loop_, 5);
  receiver.start(log_);
  EXPECT_FALSE(sender.send(bytes_of("y"), receiver.local_address()));
  run_until(loop_, [&] { return !log_.texts.empty(); });
  EXPECT_EQ(log_.texts, std::vector<std::string>{"y"});
}

TEST_F(DatagramTest, DefersPacketsWhilePaused) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  for (int round = 1; round <= 2; ++round) {
    receiver.pause();
    sender.send(bytes_of("x"), receiver.local_address());
    EXPECT_TRUE(runs_out(loop_));  // A paused one does not keep the loop alive.
    EXPECT_EQ(log_.batches, round - 1);
    receiver.resume();
    run_until(loop_, [&] { return log_.batches == round; });
  }
}

TEST_F(DatagramTest, MayBePausedInOnWritable) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  log_.when_writable = [&] { receiver.pause(); };
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::send, 1, EAGAIN);
    const FaultScope scope(plan);
    EXPECT_EQ(receiver.send(bytes_of("x"), sender.local_address()),
              std::errc::operation_would_block);
  }
  sender.send(bytes_of("x"), receiver.local_address());
  run_until(loop_, [&] { return log_.writable == 1; });
  run_turns(loop_, 3);
  EXPECT_EQ(log_.batches, 0);
}

}  // namespace
}  // namespace spate::testing
