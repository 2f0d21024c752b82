// Inspecting Streams from outside: their states, and all of a loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "spate/active.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/process.h"
#include "spate/net/resolver.h"
#include "spate/net/stream_info.h"
#include "spate/offload.h"
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

TEST_P(Inspecting, OpenStreamIsOpen) {
  const StreamInfo info = stream_info(left_);
  EXPECT_EQ(info.state, StreamState::open);
  EXPECT_TRUE(info.is_started);
  EXPECT_TRUE(info.has_owner);
  EXPECT_FALSE(info.is_paused);
  EXPECT_FALSE(info.is_full);
  EXPECT_EQ(info.queued + info.unread, 0u);
}

TEST_P(Inspecting, EndOfEachSideIsState) {
  for (Stream* stream : {&left_, &right_}) stream->set_half_open(true);
  left_.end();
  turns();
  EXPECT_EQ(state_of(left_), StreamState::ended);
  EXPECT_EQ(state_of(right_), StreamState::peer_ended);
  right_.end();
  turn_until([&] { return state_of(left_) == StreamState::closed; });
  EXPECT_EQ(state_of(right_), StreamState::closed);
}

TEST_P(Inspecting, StreamThatWaitsForItsPeerIsClosing) {
  EXPECT_TRUE(left_.write("hello"));
  turns();
  left_.close();
  EXPECT_EQ(state_of(left_), StreamState::closing);
  turn_until([&] { return state_of(left_) == StreamState::closed; });
}

TEST_P(Inspecting, QueuedAndUnreadBytesAreCounted) {
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

TEST_P(Inspecting, QueueThatMakesNoProgressHasStalled) {
  {
    const FullKernel full;
    right_.pause();
    EXPECT_TRUE(left_.write(pattern(1'000'000)));
    turns();
    pass(10s);
    EXPECT_TRUE(left_.write("x"));
    pass(10s);
    EXPECT_GE(stream_info(left_).stalled, 20s) << "a write is no progress";
    EXPECT_LE(stream_info(left_).stalled, 21s);
    EXPECT_EQ(stream_info(right_).stalled, 0s);
  }
  right_.resume();
  turn_until([&] { return stream_info(left_).stalled < 20s; });
  turn_until([&] { return left_.queued() == 0; });
  EXPECT_EQ(stream_info(left_).stalled, 0s);
}

TEST_P(Inspecting, LeftoverOfHandlerIsUnread) {
  right_log_.use = [](Bytes) -> std::size_t { return 0; };
  EXPECT_TRUE(left_.write("hello"));
  turn_until([&] { return stream_info(right_).unread == 5; });
}

TEST_P(Inspecting, AgeIsAccurateToSeconds) {
  EXPECT_LE(stream_info(left_).age, 1100ms);
  EXPECT_TRUE(left_.write("x"));
  pass(100s);
  EXPECT_GE(stream_info(left_).age, 98s) << "whatever moves";
  EXPECT_LE(stream_info(left_).age, 102s);
}

TEST_P(Inspecting, AllStreamsOfLoopAreShownOnce) {
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

TEST_P(Inspecting, DestroyedStreamIsShownUntilItHasSentItsData) {
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

TEST_P(Inspecting, KernelProvidesTcpInfo) {
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

TEST(StreamInspection, EmptyStreamIsClosed) {
  const Stream none;
  EXPECT_EQ(state_of(none), StreamState::closed);
  EXPECT_FALSE(stream_info(none).has_owner);
  EXPECT_EQ(stream_info(none).id, nullptr);
  EXPECT_FALSE(tcp_info(none));
}

TEST(StreamInspection, ConnectingStreamIsConnecting) {
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

TEST(StreamInspection, StreamThatOutlivesItsLoopIsClosed) {
  auto loop = must(Loop::create());
  const auto pair = must(Stream::memory_pair(*loop));
  loop = nullptr;
  EXPECT_EQ(state_of(pair.first), StreamState::closed);
  EXPECT_EQ(stream_info(pair.first).age, 0ns);
}

TEST(StreamInspection, LoopWithoutStreamsShowsNone) {
  EXPECT_TRUE(all_of(*must(Loop::create())).empty());
}

TEST(StreamInspection, EachStateHasName) {
  EXPECT_EQ(spate::name_of(StreamState::connecting), "connecting");
  EXPECT_EQ(spate::name_of(StreamState::peer_ended), "peer ended");
  EXPECT_EQ(spate::name_of(StreamState::closed), "closed");
}

// ---- for_each_active()

// Returns the entries, of which none may be a reference that no object explains.
std::vector<ActiveInfo> active_of(Loop& loop) {
  std::vector<ActiveInfo> all;
  std::int64_t total = 0;
  for_each_active(loop, [&](const ActiveInfo& info) {
    EXPECT_NE(info.kind, ActiveKind::reference) << info.count;
    total += info.count;
    all.push_back(info);
  });
  EXPECT_EQ(total, loop.active_count());
  return all;
}

TEST(InspectingActive, ListenerIsListedWithItsAddress) {
  const auto loop = must(Loop::create());
  auto listener = must(Listener::create(*loop, own_address(0), [](Stream, const Address&) {}));
  const auto all = active_of(*loop);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, ActiveKind::listener);
  EXPECT_EQ(all[0].label, listener.address().to_string());
  EXPECT_GE(all[0].fd, 0);
  listener.pause();
  EXPECT_TRUE(active_of(*loop).empty());
}

TEST(InspectingActive, StreamsAreListedWithTheirPeers) {
  const auto loop = must(Loop::create());
  Stream accepted;
  auto listener = must(Listener::create(
      *loop, own_address(0), [&](Stream stream, const Address&) { accepted = std::move(stream); }));
  Recorder log;
  Stream stream;
  EXPECT_FALSE(stream.connect(*loop, listener.address(), log));
  const auto kinds_are = [&](std::vector<ActiveKind> wanted) {
    std::vector<ActiveKind> kinds;
    for (const ActiveInfo& info : active_of(*loop)) kinds.push_back(info.kind);
    return kinds == wanted;
  };
  EXPECT_TRUE(kinds_are({ActiveKind::listener, ActiveKind::connecting}));
  run_until(*loop, [&] { return !stream.is_connecting() && accepted.is_open(); });
  const auto all = active_of(*loop);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, ActiveKind::stream);
  EXPECT_EQ(all[0].label, listener.address().to_string());
  EXPECT_EQ(all[0].fd, stream.fd());
  stream.pause();
  EXPECT_TRUE(kinds_are({ActiveKind::listener}));
}

TEST(InspectingActive, StreamThatWaitsForItsRateIsListed) {
  const auto loop = must(Loop::create());
  auto pair = must(Stream::socket_pair(*loop));
  Recorder log;
  pair.first.start(log);
  EXPECT_TRUE(
      pair.first.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1, .burst = 1}}));
  pair.first.pause();
  EXPECT_TRUE(pair.first.write("hello"));
  run_turns(*loop, 5);
  const auto all = active_of(*loop);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, ActiveKind::stream);
}

TEST(InspectingActive, NameLookupIsListedWithItsName) {
  const auto loop = must(Loop::create());
  auto silent = must(Datagram::create(*loop, own_address(0), {}));
  EXPECT_FALSE(configure_resolver(*loop, {.servers = {silent.local_address()}}));
  const Resolving lookup =
      resolve(*loop, "name.example", 80, [](Result<std::vector<Address>>) {}, {.timeout = 60s});
  run_turns(*loop, 5);
  const auto all = active_of(*loop);
  ASSERT_FALSE(all.empty());
  bool has_name = false;
  for (const ActiveInfo& info : all) {
    EXPECT_EQ(info.kind, ActiveKind::name_lookup);
    has_name = has_name || info.label == "name.example";
  }
  EXPECT_TRUE(has_name);
}

TEST(InspectingActive, WorkOfThreadsIsListedUntilItIsDone) {
  const auto loop = must(Loop::create());
  ThreadPool pool({.max_threads = 1});
  std::atomic<bool> goes_on = false;
  bool is_done = false;
  const auto job =
      must(offload(*loop, [&] { goes_on.wait(false); }, [&] { is_done = true; }, pool));
  const auto all = active_of(*loop);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, ActiveKind::offload);
  goes_on = true;
  goes_on.notify_all();
  run_until(*loop, [&] { return is_done; });
  EXPECT_TRUE(active_of(*loop).empty());
}

TEST(InspectingActive, ChildIsListedUntilItsHandleIsDestroyed) {
  const auto loop = must(Loop::create());
  auto process =
      must(spawn(*loop, {.file = "sleep", .arguments = {"1000"}, .kill_when_destroyed = true},
                 [](const Child&) {}));
  const auto all = active_of(*loop);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, ActiveKind::child);
  EXPECT_EQ(all[0].label, std::to_string(process.pid()));
  process = {};
  EXPECT_TRUE(active_of(*loop).empty());
}

#if defined(SPATE_HARDENED) || !defined(NDEBUG)
TEST(StreamIterationDeathTest, CreatingStreamDuringIterationTraps) {
  const auto loop = must(Loop::create());
  const auto pair = must(Stream::memory_pair(*loop));
  EXPECT_DEATH(for_each_stream(*loop, [&](const Stream&) { (void)Stream::memory_pair(*loop); }),
               "made in for_each_stream");
}

TEST(StreamIterationDeathTest, DestroyingStreamDuringIterationTraps) {
  const auto loop = must(Loop::create());
  auto pair = must(Stream::memory_pair(*loop));
  EXPECT_DEATH(for_each_stream(*loop, [&](const Stream&) { pair.first = {}; }),
               "destroyed in for_each_stream");
}
#endif

}  // namespace
}  // namespace spate::testing
