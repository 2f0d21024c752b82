// Reads and channel operations that are cancelled at every point of many messages: no byte and no
// value is lost, or arrives twice. Each seed cancels some ten thousand; SPATE_SEEDS sets the number
// of seeds.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "spate/coro/channel.h"
#include "spate/coro/scope.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/net/stream.h"
#include "tests/coro/text.h"
#include "tests/support/random.h"
#include "tests/support/scripted.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

constexpr int kGivenUp = 10'000;  // Cancelled operations for each seed.

struct CancelSafety : ::testing::Test {
  Loop& loop() { return *scripted.loop; }
  // Lets time pass, so that every sleeping task is resumed.
  void turn() {
    EXPECT_FALSE(loop().run(Run::no_wait));
    scripted.clock.advance(Nanos{random.span(2000)});
  }
  Nanos any_time() { return Nanos{random.span(2000)}; }

  ScriptedLoop scripted;
  Random random{0};
  int given_up = 0;
};

// ---- bytes

Task<void> patience(Nanos time) { co_await coro::sleep(time); }

// How many were taken.
Task<std::size_t> read_a_message(coro::Stream* stream, Text* text, std::size_t kind,
                                 std::size_t size) {
  Result<Bytes> bytes;
  if (kind == 0) {
    bytes = co_await stream->read_exactly(size);
  } else if (kind == 1) {
    bytes = co_await stream->read(Delimiter{.keep_delimiter = true});
  } else {
    bytes = co_await stream->read_some();
  }
  EXPECT_TRUE(bytes);
  if (!bytes) co_return 1;
  text->check(*bytes);
  co_return bytes->size();
}

// Reads one message after another, and cancels some of the reads.
Task<void> read_on(CancelSafety* test, coro::Stream* stream, Text* text) {
  for (;;) {
    const std::size_t kind = test->random.below(3);
    const Nanos time = test->any_time();
    Task<std::size_t> message = read_a_message(stream, text, kind, 1 + test->random.below(40));
    if (test->random.one_in(2)) {
      const Result<std::size_t> size = co_await coro::with_deadline(time, std::move(message));
      if (!size) ++test->given_up;
    } else {
      Task<void> end = patience(time);
      const auto first = co_await coro::when_any(std::move(message), std::move(end));
      if (first.index() == 1) ++test->given_up;
    }
  }
}

TEST_F(CancelSafety, CancelledReadsNeitherLoseNorRepeatBytes) {
  for (const std::uint64_t seed : seeds(4)) {
    SCOPED_TRACE(seed);
    random = Random(seed);
    given_up = 0;
    auto pair = must(spate::Stream::memory_pair(loop()));
    coro::Stream stream(std::move(pair.second));
    Text text;
    coro::Scope scope(loop());
    scope.spawn(read_on(this, &stream, &text));
    while (given_up < kGivenUp && !HasFailure()) {
      const std::string_view part = text.next(random.below(random.one_in(8) ? 200 : 4));
      text.sent += part.size();
      if (!part.empty()) pair.first.write(part);
      turn();
    }
    EXPECT_GT(text.read, 5000u);
    EXPECT_LE(text.sent - text.read, 400u) << "it stopped";
    scope.cancel();
  }
}

// ---- values

using Values = coro::Channel<int>;

Task<bool> send_one(Values* channel, int value) { co_return co_await channel->send(value); }
Task<std::optional<int>> receive_one(Values* channel) { co_return co_await channel->receive(); }

Task<void> send_on(CancelSafety* test, Values* channel, int* next) {
  for (;;) {
    const Nanos time = test->any_time();
    Task<bool> send = send_one(channel, *next);
    const Result<bool> sent = co_await coro::with_deadline(time, std::move(send));
    if (!sent) ++test->given_up;
    if (sent && *sent) ++*next;
    if (test->random.one_in(8)) co_await coro::next_turn();
  }
}
Task<void> receive_on(CancelSafety* test, Values* channel, int* next) {
  for (;;) {
    const Nanos time = test->any_time();
    Task<std::optional<int>> receive = receive_one(channel);
    Task<void> end = patience(time);
    const auto first = co_await coro::when_any(std::move(receive), std::move(end));
    if (first.index() == 1) {
      ++test->given_up;
    } else {
      EXPECT_EQ(std::get<0>(first), *next) << "lost, or doubled";
      ++*next;
    }
    if (test->random.one_in(8)) co_await coro::next_turn();
  }
}

TEST_F(CancelSafety, CancelledReceivesNeitherLoseNorRepeatValues) {
  for (const std::uint64_t seed : seeds(4)) {
    SCOPED_TRACE(seed);
    random = Random(seed);
    given_up = 0;
    int sent = 0;
    int received = 0;
    Values channel(1 + random.below(3));
    coro::Scope scope(loop());
    scope.spawn(send_on(this, &channel, &sent));
    while (given_up < kGivenUp && !HasFailure()) {
      // At times the channel has no receiver.
      coro::Scope receiver(loop());
      for (std::size_t turns = random.below(40); turns > 0; --turns) turn();
      receiver.spawn(receive_on(this, &channel, &received));
      for (std::size_t turns = random.below(40); turns > 0; --turns) turn();
    }
    EXPECT_GT(received, 100);
    EXPECT_EQ(static_cast<std::size_t>(sent - received), channel.size());
  }
}

}  // namespace
}  // namespace spate::testing
