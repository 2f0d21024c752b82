// Callbacks that run the loop. The bytes offered to a connection, and those it writes, are not
// mixed with others.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "streams/harness.h"

namespace spate::testing {
namespace {

// In addition to `left` and `right` a second pair, whose bytes arrive while a callback of the first
// runs.
class Nested : public StreamTest {
 protected:
  Nested() {
    Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
    other_left_ = std::move(pair->first);
    other_right_ = std::move(pair->second);
    other_left_.start(other_left_log_);
    other_right_.start(other_right_log_);
  }
  // Runs until the other pair has received the bytes that `other_left_` wrote.
  void run_until_other_has(std::size_t size) {
    run_until(loop_, [&] { return other_right_log_.received.size() == size; });
  }

  Stream other_left_;
  Stream other_right_;
  Recorder other_left_log_;
  Recorder other_right_log_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Nested, all_kinds(), name_of);

TEST_P(Nested, LeftoverKeepsItsData) {
  int calls = 0;
  right_log_.use = [&](Bytes bytes) -> std::size_t {
    if (++calls > 1) return bytes.size();
    EXPECT_TRUE(other_left_.write("SECRET OF THE OTHER"));
    run_until_other_has(19);
    EXPECT_EQ(text_of(bytes), "mine");
    return 0;
  };
  EXPECT_TRUE(left_.write("mine"));
  run_until(loop_, [&] { return calls == 1; });
  EXPECT_TRUE(left_.write(", too"));
  run_until(loop_, [&] { return calls == 2; });
  EXPECT_EQ(right_log_.received, "mine, too");
}

TEST_P(Nested, EchoBeforeNestedRunKeepsItsData) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write(bytes));
    EXPECT_TRUE(other_left_.write("SECRET OF THE OTHER"));
    run_until_other_has(19);
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("hello from me"));
  run_until(loop_, [&] { return left_log_.received.size() == 13; });
  EXPECT_EQ(left_log_.received, "hello from me");
}

TEST_P(Nested, EchoAfterNestedRunKeepsItsData) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(other_left_.write("SECRET OF THE OTHER"));
    run_until_other_has(19);
    EXPECT_TRUE(right_.write(bytes));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("hello from me"));
  run_until(loop_, [&] { return left_log_.received.size() == 13; });
  EXPECT_EQ(left_log_.received, "hello from me");
}

// Each in the callback of the previous one.
TEST_P(Nested, DeepNestingKeepsDataOfEachLevel) {
  constexpr int kDepth = 20;
  std::vector<Stream> writers;
  std::vector<Stream> readers;
  std::vector<Recorder> logs(kDepth);
  for (int i = 0; i < kDepth; ++i) {
    Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
    ASSERT_TRUE(pair);
    writers.push_back(std::move(pair->first));
    readers.push_back(std::move(pair->second));
  }
  for (std::size_t i = 0; i < kDepth; ++i) {
    const std::string mine(100, static_cast<char>('a' + i));
    logs[i].use = [&, i, mine](Bytes bytes) {
      if (i + 1 < kDepth) {
        EXPECT_TRUE(writers[i + 1].write(std::string(100, static_cast<char>('a' + i + 1))));
        run_until(loop_, [&] { return logs[i + 1].received.size() == 100; });
      }
      EXPECT_EQ(text_of(bytes), mine);
      return bytes.size();
    };
    readers[i].start(logs[i]);
  }
  EXPECT_TRUE(writers[0].write(std::string(100, 'a')));
  run_until(loop_, [&] { return logs[0].received.size() == 100; });
}

// Otherwise the loop would wait for an answer to bytes that were not sent.
TEST_P(Nested, EarlierWritesAreSentFirst) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write("question"));
    run_until(loop_, [&] { return left_log_.received == "question"; });
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("begin"));
  run_until(loop_, [&] { return right_log_.received == "begin"; });
  EXPECT_EQ(left_log_.received, "question");
}

TEST_P(Nested, WritesOfTimerAreSentAtOnce) {
  right_log_.use = [&](Bytes bytes) {
    Timer timer(loop_, [this] { EXPECT_TRUE(right_.write("from a timer")); });
    EXPECT_TRUE(timer.start(Nanos{0}));
    run_until(loop_, [&] { return left_log_.received == "from a timer"; });
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("begin"));
  run_until(loop_, [&] { return right_log_.received == "begin"; });
}

TEST_P(Nested, QueueOfWaitingStreamIsSent) {
  const std::string answer = pattern(8'000'000);
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write(answer));
    EXPECT_TRUE(right_.is_full());
    run_until(loop_, [&] { return right_.queued() == 0; });
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("begin"));
  run_until(loop_, [&] { return left_log_.received.size() == answer.size(); });
  EXPECT_TRUE(left_log_.received == answer);
  run_until(loop_, [&] { return right_log_.log == "drained "; });
}

TEST_P(Nested, DeferredBytesDoNotKeepLoopAwake) {
  right_log_.use = [&](Bytes bytes) {
    if (right_log_.data_calls > 1) return bytes.size();
    bool is_over = false;
    Timer timer(loop_, [&] { is_over = true; });
    EXPECT_TRUE(left_.write("more") && timer.start(std::chrono::milliseconds(10)));
    const std::uint64_t before = loop_.iteration();
    run_until(loop_, [&] { return is_over; });
    EXPECT_LT(loop_.iteration() - before, 20u);
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("begin"));
  run_until(loop_, [&] { return right_log_.received == "beginmore"; });
}

TEST_P(Nested, BytesThatArriveMeanwhileAreDeliveredLaterInOrder) {
  bool is_inside = false;
  right_log_.use = [&](Bytes bytes) {
    EXPECT_FALSE(std::exchange(is_inside, true)) << "one callback of a connection at a time";
    if (right_log_.data_calls == 1) {
      EXPECT_TRUE(left_.write("second "));
      left_.end();
      run_turns(loop_, 5);
      EXPECT_EQ(right_log_.log, "");
    }
    is_inside = false;
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("first "));
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.received, "first second ");
  EXPECT_EQ(right_log_.log, "end closed ");
}

TEST_P(Nested, LeftoverIsDeliveredAgainAfterExternalResume) {
  right_log_.use = [&](Bytes bytes) -> std::size_t {
    if (right_log_.data_calls > 1) return bytes.size();
    right_.pause();
    Timer timer(loop_, [this] { right_.resume(); });
    EXPECT_TRUE(timer.start(Nanos{0}));
    run_until(loop_, [&] { return !right_.is_paused(); });
    return 0;
  };
  EXPECT_TRUE(left_.write("left"));
  run_until(loop_, [&] { return right_log_.received == "left"; });
}

// The callback sends a request through another loop, and waits for the response there.
TEST_P(Nested, EarlierWritesAreSentBeforeAnotherLoopRuns) {
  if (in_a_world) GTEST_SKIP() << "the streams are real sockets";
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const std::unique_ptr<Loop> other = must(Loop::create());
  Stream near = must(Stream::adopt(loop_, fds[0]));
  Stream far = must(Stream::adopt(*other, fds[1]));
  Recorder near_log;
  Recorder far_log;
  near.start(near_log);
  far.start(far_log);
  far_log.use = [&](Bytes bytes) {
    if (text_of(bytes) == "question") near.write(", and another");
    return bytes.size();
  };
  bool is_asked = false;
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write("busy"));
    EXPECT_TRUE(near.write("question"));
    run_until(*other, [&] { return far_log.received == "question, and another"; });
    is_asked = true;
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("go"));
  run_until(loop_, [&] { return is_asked && left_log_.received == "busy"; });
}

}  // namespace
}  // namespace spate::testing
