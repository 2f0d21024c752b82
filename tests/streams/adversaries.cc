// Peers that do everything that the protocol allows, however inconvenient, and a wire that splits
// and delays.
#include <gtest/gtest.h>

#include <list>
#include <string>

#include "base/fault.h"
#include "spate/error.h"
#include "spate/net/framing.h"
#include "streams/harness.h"
#include "support/random.h"
#include "support/sanitizers.h"
#include "support/scripted.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class Adversary : public StreamTest {
 protected:
  // Makes `left` parse its input as messages with a length prefix of two bytes.
  void expect_messages_at_the_left() {
    left_log_.use = [this](Bytes bytes) {
      return split(bytes, LengthField{.width = 2},
                   [this](Bytes message) { messages_.emplace_back(text_of(message)); })
          .used;
    };
  }
  static std::string framed(const std::string& message) {
    std::byte length[2];
    EXPECT_TRUE((LengthField{.width = 2}.write(message.size(), length)));
    return std::string(text_of(length)) + message;
  }

  std::vector<std::string> messages_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Adversary, all_kinds(), name_of);

TEST_P(Adversary, SendsOneByteAtTime) {
  expect_messages_at_the_left();
  const std::vector<std::string> sent = {pattern(300), "", "x", pattern(999)};
  std::string bytes;
  for (const std::string& message : sent) bytes += framed(message);
  for (const char byte : bytes) {
    EXPECT_TRUE(right_.write(std::string_view(&byte, 1)));
    loop_.run(Run::no_wait);
  }
  run_until(loop_, [&] { return messages_.size() == sent.size(); });
  EXPECT_EQ(messages_, sent);
  EXPECT_GT(left_log_.data_calls, 100);
}

TEST_P(Adversary, SendsLongMessageOneByteAtTime) {
  std::size_t size = 0;
  left_log_.use = [&](Bytes bytes) {
    const Split messages =
        split(bytes, LengthField{}, [&size](Bytes message) { size = message.size(); });
    EXPECT_TRUE(left_.want(messages.wanted));
    return messages.used;
  };
  std::string bytes(4, '\0');
  constexpr std::size_t kSize = 3000;
  EXPECT_TRUE(LengthField{}.write(kSize, std::as_writable_bytes(std::span(bytes))));
  bytes += pattern(kSize);
  for (const char byte : bytes) {
    EXPECT_TRUE(right_.write(std::string_view(&byte, 1)));
    loop_.run(Run::no_wait);
  }
  run_until(loop_, [&] { return size == kSize; });
  EXPECT_LE(left_log_.data_calls, 3) << "the length, and the whole";
}

TEST_P(Adversary, EndsInMiddleOfMessage) {
  expect_messages_at_the_left();
  EXPECT_TRUE(right_.write(framed("whole") + framed("not whole").substr(0, 5)));
  right_.end();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(messages_, std::vector<std::string>{"whole"});
  EXPECT_EQ(left_log_.log, "end closed ");
}

TEST_P(Adversary, ResetsInMiddleOfMessage) {
  expect_messages_at_the_left();
  right_.pause();
  EXPECT_TRUE(left_.write("unread"));
  run_turns(loop_, 3);
  EXPECT_TRUE(right_.write(framed("whole") + framed("not whole").substr(0, 5)));
  run_until(loop_, [&] { return messages_.size() == 1; });
  right_.abort();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, std::errc::connection_reset);
  EXPECT_EQ(left_log_.log, "closed ");
  EXPECT_EQ(messages_.size(), 1u);
}

TEST_P(Adversary, ReadsFewBytesAtTime) {
  constexpr std::size_t kSize = 400'000;
  const std::string sent = pattern(kSize);
  ASSERT_TRUE(left_.set_limits({.low = 10'000, .high = 50'000}));
  std::size_t written = 0;
  const auto produce = [&] {
    while (written < kSize && !left_.is_full()) {
      const std::size_t count = std::min<std::size_t>(4000, kSize - written);
      ASSERT_TRUE(left_.write(std::string_view(sent).substr(written, count)));
      written += count;
      ASSERT_LE(left_.queued(), 54'000u);
    }
  };
  left_log_.when_drained = produce;
  Random random(1);
  right_log_.use = [&](Bytes bytes) {
    right_.pause();
    return random.one_in(50) ? bytes.size() : std::min<std::size_t>(bytes.size(), 1);
  };
  produce();
  run_until(loop_, [&] {
    right_.resume();
    return right_log_.received.size() == kSize;
  });
  EXPECT_TRUE(right_log_.received == sent);
}

TEST_P(Adversary, SendsAfterOurEnd) {
  right_.set_half_open(true);
  left_.end();
  run_until(loop_, [&] { return right_log_.log == "end "; });
  const std::string sent = pattern(3'000'000);
  EXPECT_TRUE(right_.write(sent));
  run_until(loop_, [&] { return left_log_.received.size() == sent.size(); });
  EXPECT_TRUE(left_log_.received == sent);
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Adversary, SendsAndNeverReads) {
  ASSERT_TRUE(left_.set_limits({.low = 10'000, .high = 100'000, .pause_reading = true}));
  left_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(left_.write(bytes));
    return bytes.size();
  };
  right_.pause();
  const std::string sent = pattern(500'000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(right_.write(sent));
    run_turns(loop_, 20);
    EXPECT_LE(left_.queued(), 200'000u);
  }
}

// ---- time

struct OwnClock {
  ScriptedClock clock_;
};

class SlowAdversary : OwnClock, public StreamTest {
 protected:
  SlowAdversary() : StreamTest({.clock = &clock_}) {}
  void pass(Nanos time) {
    clock_.advance(time);
    run_turns(loop_, 20);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, SlowAdversary, all_kinds(), name_of);

TEST_P(SlowAdversary, StallsInMiddleOfMessage) {
  left_log_.use = [](Bytes) { return std::size_t{0}; };
  left_.set_idle_timeout(5s);
  EXPECT_TRUE(right_.write("half a mess"));
  run_until(loop_, [&] { return left_log_.data_calls == 1; });
  pass(4s);
  EXPECT_EQ(left_log_.log, "");
  pass(1s + 3ms);
  EXPECT_EQ(left_log_.log, "closed ");
  EXPECT_EQ(left_log_.error, Error::idle_timeout);
}

TEST_P(SlowAdversary, ReadsLittleBeforeEachTimeout) {
  left_.set_write_timeout(5s);
  right_.pause();
  EXPECT_TRUE(left_.write(pattern(30'000'000)));
  run_turns(loop_, 20);
  right_log_.use = [this](Bytes bytes) {
    right_.pause();
    return bytes.size();
  };
  for (int i = 0; i < 5; ++i) {
    const std::size_t before = left_.queued();
    ASSERT_GT(before, 0u);
    run_until(loop_, [&] {
      right_.resume();
      return left_.queued() < before;
    });
    right_.pause();
    pass(4s);
  }
  EXPECT_EQ(left_log_.closed_calls, 0) << "slow is not dead";
}

// ---- a wire that splits and delays

// Carries the bytes of one stream to another, in random pieces at random times.
class Wire final : public StreamHandler {
 public:
  Wire(Loop& loop, Random& random, Stream& from, Stream& to)
      : random_(random), from_(from), to_(to), timer_(loop, bind<&Wire::on_timer>(this)) {
    from_.start(*this);
  }

  std::size_t on_data(Bytes bytes) override {
    const std::size_t size = random_.one_in(3)   ? 0
                             : random_.one_in(4) ? 1
                                                 : 1 + random_.below(bytes.size());
    if (size < bytes.size()) {
      from_.pause();
      timer_.start(Nanos{random_.span(100'000)});
    }
    if (to_.is_writable() && !to_.write(bytes.first(size))) broken = true;
    return size;
  }
  void on_end() override { to_.end(); }
  void on_closed(std::error_code) override { ++closed_calls; }

  int closed_calls = 0;
  bool broken = false;

 private:
  void on_timer() {
    if (from_.is_open()) from_.resume();
  }

  Random& random_;
  Stream& from_;
  Stream& to_;
  Timer timer_;
};

// One of two ends that are connected through the wire: sends random bytes in random pieces, and
// checks its input.
class Talker final : public StreamHandler {
 public:
  Talker(Random& random, Stream stream, std::uint64_t own_seed, std::uint64_t peers_seed,
         std::size_t size)
      : random_(random),
        stream_(std::move(stream)),
        own_(own_seed),
        peers_(peers_seed),
        to_send_(size) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }

  void send_some() {
    while (to_send_ > 0 && stream_.is_writable() && !stream_.is_full()) {
      std::string bytes(std::min(to_send_, 1 + random_.below(random_.one_in(5) ? 50'000 : 500)),
                        ' ');
      for (char& byte : bytes) byte = static_cast<char>(own_.next());
      if (!stream_.write(bytes)) return;
      to_send_ -= bytes.size();
      if (random_.one_in(4)) break;
    }
    if (to_send_ == 0) stream_.end();
  }

  std::size_t on_data(Bytes bytes) override {
    EXPECT_EQ(closed_calls, 0);
    const std::size_t size = random_.one_in(3) ? random_.below(bytes.size() + 1) : bytes.size();
    for (const std::byte byte : bytes.first(size)) {
      if (byte != static_cast<std::byte>(peers_.next())) is_garbled = true;
    }
    received += size;
    left = bytes.size() - size;
    send_some();
    return size;
  }
  void on_end() override {
    ended = true;
    for (; left > 0; --left, ++received) peers_.next();  // Not offered again after the end.
  }
  void on_drained() override { send_some(); }
  void on_closed(std::error_code why) override {
    ++closed_calls;
    error = why;
  }
  bool is_open() const { return stream_.is_open(); }
  void abort() { stream_.abort(); }

  std::size_t received = 0;
  std::size_t left = 0;
  bool ended = false;
  bool is_garbled = false;
  int closed_calls = 0;
  std::error_code error;

 private:
  Random& random_;
  Stream stream_;
  Random own_;
  Random peers_;
  std::size_t to_send_;
};

class ChaosPipe : public KindTest {
 protected:
  static constexpr std::size_t kSize = 60'000;

  struct Result {
    bool is_whole;
    bool is_settled;
  };
  // Two talkers, connected by a wire of two pairs of streams.
  Result talk(std::uint64_t seed) {
    const std::unique_ptr<Loop> loop = *Loop::create();
    Random random(seed);
    auto near = make_pair(*loop, GetParam());
    auto far = make_pair(*loop, GetParam());
    EXPECT_TRUE(near && far);
    if (!near || !far) return {};
    Wire there(*loop, random, near->second, far->first);
    Wire back(*loop, random, far->first, near->second);
    near->second.set_half_open(true);
    far->first.set_half_open(true);
    Talker one(random, std::move(near->first), seed + 1, seed + 2, kSize);
    Talker two(random, std::move(far->second), seed + 2, seed + 1, kSize);
    const auto is_settled = [&] {
      return there.closed_calls + back.closed_calls == 2 &&
             one.closed_calls + two.closed_calls == 2;
    };
    const auto go_on = [&] {
      one.send_some();
      two.send_some();
      // If one side of the wire is closed, close the other side too.
      if (there.closed_calls == 1 && one.closed_calls == 1) far->first.close();
      if (back.closed_calls == 1 && two.closed_calls == 1) near->second.close();
    };
    Timer prod(*loop, [&go_on] { go_on(); });
    prod.start(Nanos{0}, 100us);
    run_until(*loop, is_settled);
    EXPECT_FALSE(one.is_garbled || two.is_garbled);
    EXPECT_LE(one.closed_calls, 1);
    EXPECT_LE(two.closed_calls, 1);
    const bool is_whole = !there.broken && !back.broken && one.ended && two.ended &&
                          one.received == kSize && two.received == kSize;
    return {is_whole, is_settled()};
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, ChaosPipe, all_kinds(), name_of);

TEST_P(ChaosPipe, CarriesEveryByteBothWays) {
  for (const std::uint64_t seed : seeds(kIsSanitized ? 15 : 40)) {
    SCOPED_TRACE(::testing::Message() << "SPATE_SEED=" << seed);
    EXPECT_TRUE(talk(seed).is_whole);
    if (HasFailure()) return;
  }
}

// The kernel transfers few bytes, returns EAGAIN though there are some, and EINTR.
TEST_P(ChaosPipe, CarriesEveryByteDespiteShortCallsAndEagain) {
  std::uint64_t failures = 0;
  for (const std::uint64_t seed : seeds(kIsSanitized ? 10 : 25)) {
    SCOPED_TRACE(::testing::Message() << "SPATE_SEED=" << seed);
    FaultPlan plan;
    plan.shorten_share(SystemCall::receive, 0.3, 1 + seed % 20, seed);
    plan.shorten_share(SystemCall::send, 0.3, 1 + seed % 13, seed + 1);
    for (const SystemCall call : {SystemCall::receive, SystemCall::send}) {
      plan.fail_share(call, 0.1, EAGAIN, seed + 2);
      plan.fail_share(call, 0.1, EINTR, seed + 3);
    }
    plan.fail_share(SystemCall::epoll_wait, 0.1, EINTR, seed + 4);
    const FaultScope scope(plan);
    EXPECT_TRUE(talk(seed).is_whole);
    failures += plan.failures(SystemCall::send);
    if (HasFailure()) return;
  }
  if (!is_in_memory()) {
    EXPECT_GT(failures, 10u);
  }
}

// The kernel breaks connections: then both ends report it, once, and no byte is out of order.
TEST_P(ChaosPipe, ReportsBrokenConnectionsOnce) {
  int broken = 0;
  for (const std::uint64_t seed : seeds(kIsSanitized ? 15 : 40)) {
    SCOPED_TRACE(::testing::Message() << "SPATE_SEED=" << seed);
    FaultPlan plan;
    for (const int error : {ECONNRESET, ENOBUFS, ENOMEM, ETIMEDOUT, EPIPE})
      plan.fail_share(SystemCall::send, 0.002, error, seed + static_cast<std::uint64_t>(error));
    for (const int error : {ECONNRESET, ENOMEM, EHOSTUNREACH, ETIMEDOUT})
      plan.fail_share(SystemCall::receive, 0.002, error, seed + static_cast<std::uint64_t>(error));
    const FaultScope scope(plan);
    const Result result = talk(seed);
    EXPECT_TRUE(result.is_settled);
    broken += !result.is_whole;
    if (HasFailure()) return;
  }
  if (!is_in_memory()) {
    EXPECT_GT(broken, 0);
  }
}

}  // namespace
}  // namespace spate::testing
