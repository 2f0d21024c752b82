// Looking at Streams from outside: their states, and all of a loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "spate/net/listener.h"
#include "spate/net/stream_info.h"
#include "streams/harness.h"
#include "support/own_loopback.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

using Inspecting = TimedStreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Inspecting, all_kinds(), name_of);

StreamState state_of(const Stream& stream) { return stream_info(stream).state; }

std::vector<StreamInfo> all_of(Loop& loop) {
  std::vector<StreamInfo> all;
  for_each_stream(loop, [&](const Stream& stream) { all.push_back(stream_info(stream)); });
  return all;
}

std::size_t count_of(Loop& loop, StreamState state) {
  return static_cast<std::size_t>(std::ranges::count(all_of(loop), state, &StreamInfo::state));
}

TEST_P(Inspecting, AnOpenStreamIsOpen) {
  const StreamInfo info = stream_info(left_);
  EXPECT_EQ(info.state, StreamState::open);
  EXPECT_TRUE(info.is_started);
  EXPECT_TRUE(info.has_owner);
  EXPECT_FALSE(info.is_paused);
  EXPECT_FALSE(info.is_full);
  EXPECT_EQ(info.queued + info.unread, 0u);
}

TEST_P(Inspecting, EachSidesEndIsAState) {
  for (Stream* stream : {&left_, &right_}) stream->set_half_open(true);
  left_.end();
  turns();
  EXPECT_EQ(state_of(left_), StreamState::ended);
  EXPECT_EQ(state_of(right_), StreamState::peer_ended);
  right_.end();
  turn_until([&] { return state_of(left_) == StreamState::closed; });
  EXPECT_EQ(state_of(right_), StreamState::closed);
}

TEST_P(Inspecting, OneThatWaitsForItsPeerIsClosing) {
  EXPECT_TRUE(left_.write("hello"));
  turns();
  left_.close();
  EXPECT_EQ(state_of(left_), StreamState::closing);
  turn_until([&] { return state_of(left_) == StreamState::closed; });
}

TEST_P(Inspecting, WhatWaitsIsCounted) {
  right_log_.use = [](Bytes) -> std::size_t { return 0; };
  EXPECT_TRUE(left_.set_limits({.low = 10, .high = 100}));
  {
    const FullKernel full;
    right_.pause();
    EXPECT_TRUE(left_.write(pattern(1'000'000)));
    turns();
    const StreamInfo info = stream_info(left_);
    EXPECT_EQ(info.queued, left_.queued());
    EXPECT_GT(info.queued, 100u);
    EXPECT_TRUE(info.is_full);
    EXPECT_TRUE(stream_info(right_).is_paused);
    left_.end();
    EXPECT_EQ(state_of(left_), StreamState::ending);
  }
  left_.abort();
  EXPECT_EQ(state_of(left_), StreamState::closed);
}

TEST_P(Inspecting, WhatTheHandlerLeavesIsUnread) {
  right_log_.use = [](Bytes) -> std::size_t { return 0; };
  EXPECT_TRUE(left_.write("hello"));
  turn_until([&] { return stream_info(right_).unread == 5; });
}

TEST_P(Inspecting, TheAgeIsInSecondsOrSo) {
  EXPECT_LE(stream_info(left_).age, 1100ms);
  EXPECT_TRUE(left_.write("x"));
  pass(100s);
  EXPECT_GE(stream_info(left_).age, 98s) << "whatever moves";
  EXPECT_LE(stream_info(left_).age, 102s);
}

TEST_P(Inspecting, AllOfALoopAreShownOnce) {
  std::vector<const void*> shown;
  for (const StreamInfo& info : all_of(loop_)) shown.push_back(info.id);
  std::ranges::sort(shown);
  EXPECT_TRUE(std::ranges::adjacent_find(shown) == shown.end());
  for (const Stream* stream : {&left_, &right_})
    EXPECT_TRUE(std::ranges::binary_search(shown, stream_info(*stream).id));
  left_.abort();
  left_ = {};
  EXPECT_EQ(all_of(loop_).size(), shown.size() - 1);
}

TEST_P(Inspecting, OneThatWasDestroyedIsShownUntilItIsDone) {
  {
    const FullKernel full;
    EXPECT_TRUE(left_.write(pattern(100'000)));
    left_ = {};
    const std::vector<StreamInfo> all = all_of(loop_);
    const auto left = std::ranges::find(all, false, &StreamInfo::has_owner);
    ASSERT_NE(left, all.end());
    EXPECT_EQ(left->state, StreamState::closing);
    EXPECT_FALSE(left->is_started);
    if (!is_in_memory()) {
      EXPECT_GT(left->queued, 0u);
    }
  }
  turn_until([&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(count_of(loop_, StreamState::closing), 0u);
}

TEST_P(Inspecting, TheKernelTellsOfTcp) {
  const auto before = tcp_info(left_);
  EXPECT_EQ(before.has_value(), GetParam() == Kind::tcp);
  if (!before) return;
  EXPECT_TRUE(left_.write("hello"));
  turn_until([&] { return right_log_.received == "hello"; });
  EXPECT_TRUE(right_.write("you"));
  turn_until([&] { return left_log_.received == "you"; });
  const auto after = tcp_info(left_);
  EXPECT_EQ(after->received, 3u);
  EXPECT_EQ(after->sent - before->sent, 5u);
  EXPECT_EQ(after->unsent, 0u);
  EXPECT_GE(after->since_received, 0ns);
  EXPECT_GE(after->since_sent, after->since_received);
}

TEST(InspectingOthers, AnEmptyStreamIsClosed) {
  const Stream none;
  EXPECT_EQ(state_of(none), StreamState::closed);
  EXPECT_FALSE(stream_info(none).has_owner);
  EXPECT_EQ(stream_info(none).id, nullptr);
  EXPECT_FALSE(tcp_info(none));
}

TEST(InspectingOthers, OneThatConnectsIsConnecting) {
  const auto loop = must(Loop::create());
  Recorder log;
  Stream stream;
  auto listener = must(Listener::create(*loop, own_address(0), [](Stream, const Address&) {}));
  EXPECT_FALSE(stream.connect(*loop, listener.address(), log));
  EXPECT_EQ(state_of(stream), StreamState::connecting);
  EXPECT_EQ(count_of(*loop, StreamState::connecting), 1u);
  run_until(*loop, [&] { return !stream.is_connecting(); });
  EXPECT_EQ(count_of(*loop, StreamState::connecting), 0u);
}

TEST(InspectingOthers, OneThatOutlivesItsLoopIsClosed) {
  auto loop = must(Loop::create());
  const auto pair = must(Stream::memory_pair(*loop));
  loop = nullptr;
  EXPECT_EQ(state_of(pair.first), StreamState::closed);
  EXPECT_EQ(stream_info(pair.first).age, 0ns);
}

TEST(InspectingOthers, ALoopWithoutStreamsShowsNone) {
  EXPECT_TRUE(all_of(*must(Loop::create())).empty());
}

TEST(InspectingOthers, EachStateHasAName) {
  EXPECT_EQ(spate::name_of(StreamState::connecting), "connecting");
  EXPECT_EQ(spate::name_of(StreamState::peer_ended), "peer ended");
  EXPECT_EQ(spate::name_of(StreamState::closed), "closed");
}

#if defined(SPATE_HARDENED) || !defined(NDEBUG)
TEST(InspectingDeathTest, NoneMayBeMadeMeanwhile) {
  const auto loop = must(Loop::create());
  const auto pair = must(Stream::memory_pair(*loop));
  EXPECT_DEATH(for_each_stream(*loop, [&](const Stream&) { (void)Stream::memory_pair(*loop); }),
               "made in for_each_stream");
}

TEST(InspectingDeathTest, NoneMayBeDestroyedMeanwhile) {
  const auto loop = must(Loop::create());
  auto pair = must(Stream::memory_pair(*loop));
  EXPECT_DEATH(for_each_stream(*loop, [&](const Stream&) { pair.first = {}; }),
               "destroyed in for_each_stream");
}
#endif

}  // namespace
}  // namespace spate::testing
