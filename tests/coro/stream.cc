// Streams that coroutines read and write, over pairs of each kind: the bytes read are those
// written, whichever operations are cancelled in between.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "spate/coro/or_return.h"
#include "spate/coro/relay.h"
#include "spate/coro/run.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "spate/net/connect.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

// Types that tools/coro_lint.py allows as braced temporaries in a co_await.
static_assert(std::is_trivially_destructible_v<Address> &&
              std::is_trivially_destructible_v<Bytes> &&
              std::is_trivially_destructible_v<ConnectOptions> &&
              std::is_trivially_destructible_v<Delimiter> &&
              std::is_trivially_destructible_v<FixedSize> &&
              std::is_trivially_destructible_v<LengthField> &&
              std::is_trivially_destructible_v<Nanos>);

enum class Kind { memory, local };
void PrintTo(Kind kind, std::ostream* out) { *out << (kind == Kind::memory ? "memory" : "local"); }

class CoroStream : public ::testing::TestWithParam<Kind> {
 protected:
  CoroStream() : loop_(must(Loop::create())) {
    auto both = pair();
    left_ = std::move(both.first);
    right_ = std::move(both.second);
  }

  Loop& loop() { return *loop_; }
  std::pair<spate::Stream, spate::Stream> pair() {
    return GetParam() == Kind::memory ? must(spate::Stream::memory_pair(*loop_))
                                      : must(spate::Stream::socket_pair(*loop_));
  }
  void turns() {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(loop_->run(Run::no_wait));
  }

  std::unique_ptr<Loop> loop_;
  spate::Stream left_;
  spate::Stream right_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, CoroStream, ::testing::Values(Kind::memory, Kind::local),
                         ::testing::PrintToStringParamName());

Task<void> echo(spate::Stream accepted) {
  coro::Stream stream(std::move(accepted));
  for (;;) {
    const Result<Bytes> some = co_await stream.read_some();
    if (!some || some->empty()) co_return;
    const Result<void> sent = co_await stream.send(*some);
    if (!sent) co_return;
  }
}

Task<Result<std::string>> ask(spate::Stream connected, std::string question) {
  coro::Stream stream(std::move(connected));
  stream.write(question);  // Does not wait for room: if the echo waited for room too, neither would
                           // ever continue.
  const Bytes answer = co_await coro::or_return(stream.read_exactly(question.size()));
  const std::string text(text_of(answer));
  co_await coro::or_return(stream.finish());
  co_return text;
}

TEST_P(CoroStream, EchoReplies) {
  coro::Scope scope(*loop_);
  ASSERT_TRUE(scope.spawn(echo(std::move(right_))));
  const Result<std::string> answer = coro::run(*loop_, ask(std::move(left_), "hello"));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(*answer, "hello");
}

TEST_P(CoroStream, LongMessageIsReturnedContiguously) {
  coro::Scope scope(*loop_);
  ASSERT_TRUE(scope.spawn(echo(std::move(right_))));
  const std::string question(3'000'000, 'x');
  const Result<std::string> answer = coro::run(*loop_, ask(std::move(left_), question));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(*answer, question);
}

TEST_P(CoroStream, LinesAreReadOneByOneAndEofIsReported) {
  const auto read_lines = [](spate::Stream from,
                             std::vector<std::string>* lines) -> Task<Result<void>> {
    coro::Stream stream(std::move(from));
    for (;;) {
      const Bytes line = co_await coro::or_return(stream.read(Delimiter{}));
      lines->emplace_back(text_of(line));
    }
  };
  left_.write("one\ntwo\n\nth");
  left_.end();
  std::vector<std::string> lines;
  const Result<void> result = coro::run(*loop_, read_lines(std::move(right_), &lines));
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", ""}));
  EXPECT_EQ(result.error(), Error::truncated);
}

TEST_P(CoroStream, EofBetweenMessagesHasDistinctError) {
  const auto read_one = [](spate::Stream from) -> Task<Result<void>> {
    coro::Stream stream(std::move(from));
    co_await coro::or_return(stream.read_exactly(3));
    co_await coro::or_return(stream.read_exactly(3));
    co_return Result<void>();
  };
  left_.write("abc");
  left_.end();
  EXPECT_EQ(coro::run(*loop_, read_one(std::move(right_))).error(), Error::ended);
}

TEST_P(CoroStream, ReadSomeReturnsNothingAtEofRepeatedly) {
  const auto read_all = [](spate::Stream from) -> Task<int> {
    coro::Stream stream(std::move(from));
    int bytes = 0;
    for (int ends = 0; ends < 3;) {
      const Result<Bytes> some = co_await stream.read_some();
      EXPECT_TRUE(some);
      bytes += static_cast<int>(some->size());
      ends += some->empty();
    }
    co_return bytes;
  };
  left_.write("abc");
  left_.end();
  EXPECT_EQ(coro::run(*loop_, read_all(std::move(right_))), 3);
}

TEST_P(CoroStream, ClosedStreamReturnsItsError) {
  const auto use = [](spate::Stream gone) -> Task<void> {
    coro::Stream stream(std::move(gone));
    const Result<Bytes> some = co_await stream.read_exactly(1);
    EXPECT_EQ(some.error(), Error::ended);
    const Result<void> sent = co_await stream.send("x");
    EXPECT_EQ(sent.error(), std::errc::broken_pipe);
    const Result<void> ended = co_await stream.finish();
    EXPECT_TRUE(ended);
  };
  coro::run(*loop_, use(spate::Stream()));
}

TEST_P(CoroStream, IdleTimeoutIsErrorOfRead) {
  const auto read = [](spate::Stream from) -> Task<Result<void>> {
    coro::Stream stream(std::move(from));
    stream.stream().set_idle_timeout(5ms);
    co_await coro::or_return(stream.read_some());
    co_return Result<void>();
  };
  loop_->ref();  // A pair in memory does not keep it alive.
  EXPECT_EQ(coro::run(*loop_, read(std::move(right_))).error(), Error::idle_timeout);
  loop_->unref();
}

TEST_P(CoroStream, SendWaitsForPeerThatDoesNotRead) {
  const auto send = [](spate::Stream to, bool* is_done) -> Task<void> {
    coro::Stream stream(std::move(to));
    const std::string much(1'000'000, 'x');
    for (int i = 0; i < 3; ++i) {
      const Result<void> sent = co_await stream.send(much);
      EXPECT_TRUE(sent);
    }
    *is_done = true;
    const Result<void> ended = co_await stream.finish();
    EXPECT_TRUE(ended);
  };
  const auto read = [](spate::Stream from) -> Task<std::size_t> {
    coro::Stream stream(std::move(from));
    std::size_t bytes = 0;
    for (;;) {
      const Result<Bytes> some = co_await stream.read_some();
      if (!some || some->empty()) co_return bytes;
      bytes += some->size();
    }
  };
  coro::Scope scope(*loop_);
  bool is_done = false;
  scope.spawn(send(std::move(left_), &is_done));
  for (int i = 0; i < 20; ++i) ASSERT_FALSE(loop_->run(Run::no_wait));
  EXPECT_FALSE(is_done);
  EXPECT_EQ(coro::run(*loop_, read(std::move(right_))), 3'000'000u);
  EXPECT_TRUE(is_done);
}

// ---- giving up loses nothing

// Reads messages of random sizes that are consecutive numbers, and cancels some reads, in each
// possible way.
Task<int> read_numbers(spate::Stream from, Random* random) {
  coro::Stream stream(std::move(from));
  int next = 0;
  const auto take_one = [](coro::Stream* its, Random* chance, bool* is_over) -> Task<int> {
    if (chance->one_in(4)) co_await coro::sleep(Nanos{chance->span(300'000)});
    const Result<Bytes> four = co_await its->read_exactly(4);
    if (!four) *is_over = true;
    if (!four) co_return -1;
    std::int32_t number = 0;
    std::memcpy(&number, four->data(), 4);
    co_return number;
  };
  for (bool is_over = false; !is_over;) {
    int got = -1;
    if (random->one_in(2)) {
      const Nanos patience{random->span(400'000)};
      const Result<int> number =
          co_await coro::with_deadline(patience, take_one(&stream, random, &is_over));
      got = number.value_or(-1);
    } else {
      Task<int> one = take_one(&stream, random, &is_over);
      const auto patience = [](Nanos time) -> Task<void> { co_await coro::sleep(time); };
      Task<void> other = patience(Nanos{random->span(400'000)});
      const auto first = co_await coro::when_any(std::move(one), std::move(other));
      if (first.index() == 0) got = std::get<0>(first);
    }
    if (got < 0) continue;
    EXPECT_EQ(got, next) << "lost, or doubled";
    next = got + 1;
  }
  co_return next;
}

Task<void> write_numbers(spate::Stream to, int count, Random* random) {
  coro::Stream stream(std::move(to));
  std::string pending;
  for (std::int32_t number = 0; number < count || !pending.empty();) {
    for (; number < count && pending.size() < 64; ++number) {
      pending.append(reinterpret_cast<const char*>(&number), 4);
    }
    const std::size_t size = std::min<std::size_t>(pending.size(), 1 + random->below(40));
    const Result<void> sent = co_await stream.send(std::string_view(pending).substr(0, size));
    EXPECT_TRUE(sent);
    pending.erase(0, size);
    if (random->one_in(3)) co_await coro::sleep(Nanos{random->span(200'000)});
  }
}

TEST_P(CoroStream, ShortReadAfterCancelledLongOneGetsBufferedBytes) {
  const auto exactly = [](coro::Stream* from, std::size_t count) -> Task<std::size_t> {
    const Result<Bytes> bytes = co_await from->read_exactly(count);
    co_return bytes ? bytes->size() : 0;
  };
  const auto reads = [exactly](coro::Stream* from) {
    return [](Task<std::size_t> much, Task<std::size_t> little) -> Task<std::size_t> {
      const Result<std::size_t> none = co_await coro::with_deadline(5ms, std::move(much));
      EXPECT_EQ(none.error(), Error::deadline);
      co_return co_await std::move(little);
    }(exactly(from, 1000), exactly(from, 10));
  };
  coro::Stream stream(std::move(right_));
  left_.write("0123456789");
  EXPECT_EQ(coro::run(*loop_, reads(&stream)), 10u);
}

TEST_P(CoroStream, CancelledReadConsumesNothing) {
  for (const std::uint64_t seed : seeds(2)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    auto pair = GetParam() == Kind::memory ? must(spate::Stream::memory_pair(*loop_))
                                           : must(spate::Stream::socket_pair(*loop_));
    coro::Scope scope(*loop_);
    constexpr int kCount = 2000;
    scope.spawn(write_numbers(std::move(pair.first), kCount, &random));
    EXPECT_EQ(coro::run(*loop_, read_numbers(std::move(pair.second), &random)), kCount);
  }
}

// ---- EOF while the reader is cancelled

constexpr std::string_view kBeginning = "the beginning of a message";

Task<void> reads_much(coro::Stream* stream) {
  co_await stream->read_exactly(100);
  ADD_FAILURE() << "resumed";
}
Task<void> ends_the_peer(spate::Stream* peer, Loop* loop) {
  for (int i = 0; i < 3; ++i) co_await coro::next_turn();
  peer->end();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(loop->run(Run::no_wait));
}
// The reader is woken by EOF while its own task runs, and is cancelled before it is resumed.
Task<void> loses_its_reader(spate::Stream own, spate::Stream* peer, Loop* loop) {
  coro::Stream stream(std::move(own));
  co_await coro::when_any(reads_much(&stream), ends_the_peer(peer, loop));
  const Result<Bytes> some = co_await stream.read_some();
  EXPECT_TRUE(some ? text_of(*some) == kBeginning : some.error() == Error::truncated)
      << "lost, and nobody is told";
  const Result<Bytes> more = co_await stream.read_some();
  EXPECT_TRUE(more && more->empty());
}

TEST_P(CoroStream, IncompleteMessageAtEofIsReadOrReported) {
  coro::Scope scope(*loop_);
  scope.spawn(loses_its_reader(std::move(right_), &left_, loop_.get()));
  left_.write(kBeginning);
  turns();
  EXPECT_TRUE(scope.empty());
}

// ---- given back

struct Collector final : StreamHandler {
  std::size_t on_data(Bytes bytes) override {
    heard += text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_closed = true; }

  std::string heard;
  bool is_closed = false;
};

Task<void> reads_a_line_and_gives_it_back(spate::Stream accepted, spate::Stream* back) {
  coro::Stream stream(std::move(accepted));
  const Result<Bytes> line = co_await stream.read(Delimiter{});
  EXPECT_TRUE(line && text_of(*line) == "first");
  *back = stream.release();
  EXPECT_FALSE(stream.write("x"));
  const Result<Bytes> more = co_await stream.read_some();
  EXPECT_TRUE(more && more->empty());
}

TEST_P(CoroStream, UnreadBytesRemainAfterReleasingStream) {
  auto [mine, theirs] = pair();
  coro::Scope scope(loop());
  spate::Stream back;
  scope.spawn(reads_a_line_and_gives_it_back(std::move(mine), &back));
  theirs.write("first\nsecond");
  turns();
  EXPECT_TRUE(scope.empty());
  Collector collector;
  back.start(collector);
  turns();
  EXPECT_EQ(collector.heard, "second");
  theirs.write(" third");
  turns();
  EXPECT_EQ(collector.heard, "second third");
}

Task<void> introduces(spate::Stream from, spate::Stream to, RelayResult* moved) {
  coro::Stream client(std::move(from));
  coro::Stream server(std::move(to));
  const Result<Bytes> name = co_await client.read(Delimiter{});
  EXPECT_TRUE(name && text_of(*name) == "name");
  spate::Stream first = client.release();
  spate::Stream second = server.release();
  *moved = co_await coro::relay(std::move(first), std::move(second));
}

TEST_P(CoroStream, ProxyRelaysDataAfterFirstLine) {
  auto [client, from] = pair();
  auto [to, server] = pair();
  RelayResult moved;
  coro::Scope scope(loop());
  Collector at_client;
  Collector at_server;
  client.start(at_client);
  server.start(at_server);
  scope.spawn(introduces(std::move(from), std::move(to), &moved));
  client.write("name\nquestion");
  turns();
  EXPECT_EQ(at_server.heard, "question");
  server.write("answer");
  server.end();
  turns();
  EXPECT_EQ(at_client.heard, "answer");
  client.end();
  turns();
  EXPECT_TRUE(scope.empty());
  EXPECT_EQ(moved.forth, 8u);
  EXPECT_EQ(moved.back, 6u);
  EXPECT_FALSE(moved.error);
}

TEST_P(CoroStream, CancelledRelayClosesBothStreams) {
  auto [client, from] = pair();
  auto [to, server] = pair();
  RelayResult moved;
  Collector at_client;
  Collector at_server;
  client.start(at_client);
  server.start(at_server);
  coro::Scope scope(loop());
  scope.spawn(introduces(std::move(from), std::move(to), &moved));
  client.write("name\n");
  turns();
  scope.cancel();
  client.end();
  server.end();
  turns();
  EXPECT_TRUE(at_client.is_closed);
  EXPECT_TRUE(at_server.is_closed);
}

}  // namespace
}  // namespace spate::testing
