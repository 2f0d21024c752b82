// Stream::connect(): connecting as a member function, and the calls allowed before the result.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/fault.h"
#include "spate/error.h"
#include "spate/io.h"
#include "spate/net/connect.h"
#include "streams/listening.h"
#include "support/closed_port.h"
#include "sys/descriptor.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class Caller final : public StreamHandler {
 public:
  std::size_t on_data(Bytes bytes) override {
    heard += text_of(bytes);
    return bytes.size();
  }
  void on_end() override { log += "end "; }
  void on_connected() override {
    log += "connected ";
    if (when_connected) when_connected();
  }
  void on_drained() override {
    log += "drained ";
    if (when_drained) when_drained();
  }
  void on_closed(std::error_code why) override {
    log += "closed ";
    error = why;
    if (when_closed) when_closed();
  }

  std::function<void()> when_connected;
  std::function<void()> when_drained;
  std::function<void()> when_closed;
  std::string heard;
  std::string log;
  std::error_code error;
};

class StreamConnect : public Listening {
 protected:
  std::string received() const { return accepted_.empty() ? "" : accepted_.front().log.received; }
  void turn_until(const std::function<bool()>& done) { run_until(loop_, done); }

  Listener listener_ = listen();
  Stream stream_;
  Caller caller_;
  int open_calls_ = 0;
};

TEST_F(StreamConnect, CallsOnConnected) {
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  EXPECT_TRUE(stream_.is_open());
  EXPECT_TRUE(stream_.is_connecting());
  EXPECT_EQ(stream_.fd(), -1);
  EXPECT_EQ(caller_.log, "");
  turn_until([&] { return caller_.log == "connected "; });
  EXPECT_FALSE(stream_.is_connecting());
  EXPECT_EQ(stream_.peer_address(), listener_.address());
  stream_.write("hello");
  turn_until([&] { return received() == "hello"; });
  accepted_.front().stream.write("welcome");
  turn_until([&] { return caller_.heard == "welcome"; });
}

TEST_F(StreamConnect, AcceptsHostName) {
  EXPECT_FALSE(stream_.connect(loop_, "127.0.0.1", listener_.address().port(), caller_, {}));
  turn_until([&] { return caller_.log == "connected "; });
}

TEST_F(StreamConnect, SendsEarlierWritesBeforeThoseOfOnConnected) {
  caller_.when_connected = [&] { stream_.write("c"); };
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  EXPECT_TRUE(stream_.write("a"));
  Buffer piece;
  EXPECT_TRUE(piece.append(bytes_of("b")));
  EXPECT_TRUE(stream_.write(std::move(piece)));
  EXPECT_EQ(stream_.queued(), 2u);
  turn_until([&] { return received().size() == 3; });
  EXPECT_EQ(received(), "abc");
}

TEST_F(StreamConnect, AppliesBackPressureLikeOtherStreams) {
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  EXPECT_TRUE(
      stream_.set_limits({.low = 10, .high = 100, .max = 1000, .when_full = WhenFull::drop}));
  EXPECT_TRUE(stream_.write(std::string(900, 'x')));
  EXPECT_TRUE(stream_.is_full());
  EXPECT_FALSE(stream_.write(std::string(900, 'x')));
  turn_until([&] { return caller_.log == "connected drained "; });
  turn_until([&] { return received().size() == 900; });
}

TEST_F(StreamConnect, EndsItsSideOnceItIsConnected) {
  for (const bool has_written : {false, true}) {
    accepted_.clear();
    caller_ = Caller();
    EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
    if (has_written) stream_.write("all");
    stream_.end();
    EXPECT_FALSE(stream_.write("more"));
    turn_until([&] { return caller_.log == "connected end closed "; });
    EXPECT_FALSE(caller_.error);
    EXPECT_EQ(received(), has_written ? "all" : "");
  }
}

TEST_F(StreamConnect, ReportsWhyItFailed) {
  EXPECT_FALSE(stream_.connect(loop_, closed_ipv4(), caller_));
  EXPECT_EQ(caller_.log, "");
  stream_.write("lost");
  turn_until([&] { return caller_.log == "closed "; });
  EXPECT_EQ(caller_.error, std::errc::connection_refused);
  EXPECT_FALSE(stream_.is_open());
  EXPECT_FALSE(stream_.connect(loop_, Address(), caller_));
  turn_until([&] { return caller_.log == "closed closed "; });
  EXPECT_EQ(caller_.error, std::errc::invalid_argument);
}

TEST_F(StreamConnect, MayReconnectInOnClosed) {
  caller_.when_closed = [&] {
    caller_.when_closed = {};
    EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  };
  EXPECT_FALSE(stream_.connect(loop_, closed_ipv4(), caller_));
  turn_until([&] { return caller_.log == "closed connected "; });
}

TEST_F(StreamConnect, HasItsOwnTimeoutAndThoseOfAllStreams) {
  // With a full backlog, a SYN gets no answer.
  Listener full = listen({.backlog = 0});
  full.pause();
  std::list<Stream> crowd;
  Caller others;
  for (int i = 0; i < 3; ++i) {
    crowd.emplace_back();
    EXPECT_FALSE(crowd.back().connect(loop_, full.address(), others));
  }
  EXPECT_FALSE(stream_.connect(loop_, full.address(), caller_, {.timeout = 20ms}));
  turn_until([&] { return caller_.log == "closed "; });
  EXPECT_EQ(caller_.error, Error::connect_timeout);
  EXPECT_FALSE(stream_.connect(loop_, full.address(), caller_));
  stream_.set_deadline(20ms);
  turn_until([&] { return caller_.log == "closed closed "; });
  EXPECT_EQ(caller_.error, Error::deadline);
}

TEST_F(StreamConnect, IsCancelledByClose) {
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  stream_.close();
  turn_until([&] { return caller_.log == "closed "; });
  EXPECT_FALSE(caller_.error);
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  stream_.abort();
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  stream_ = Stream();
  run_turns(loop_, 5);
  EXPECT_EQ(caller_.log, "closed ");
  EXPECT_EQ(received(), "");
}

TEST_F(StreamConnect, SendsQueuedDataThoughDestroyed) {
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  stream_.write("farewell");
  stream_ = Stream();
  turn_until([&] { return received() == "farewell"; });
  EXPECT_EQ(caller_.log, "");
}

TEST_F(StreamConnect, MayBeDestroyedInOnConnected) {
  caller_.when_connected = [&] { stream_ = Stream(); };
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  turn_until([&] { return caller_.log == "connected "; });
  run_turns(loop_, 5);
  EXPECT_EQ(caller_.log, "connected ");
}

// The socket is ready in the turn in which the queue overflows.
TEST_F(StreamConnect, StaysConnectingWhenQueueOverflows) {
  const auto look = [this] {
    EXPECT_EQ(stream_.is_connecting(), stream_.is_open());
    open_calls_ += stream_.is_open() ? 1 : 0;
  };
  Timer overflow(loop_, [this] { EXPECT_FALSE(stream_.write("more")); });
  const sys::Descriptor readable[2] = {sys::Descriptor(::eventfd(1, EFD_CLOEXEC)),
                                       sys::Descriptor(::eventfd(1, EFD_CLOEXEC))};
  Io before(loop_, readable[0].get(), Events::read, look);
  Io after(loop_, readable[1].get(), Events::read, look);
  EXPECT_TRUE(before.start());
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  EXPECT_TRUE(stream_.set_limits({.low = 0, .high = 1, .max = 1}));
  EXPECT_TRUE(after.start());
  overflow.feed();
  loop_.run(Run::no_wait);
  EXPECT_GT(open_calls_, 0);
  before.stop();
  after.stop();
  turn_until([&] { return caller_.log != ""; });
  EXPECT_EQ(caller_.log, "closed ");
  EXPECT_EQ(caller_.error, Error::queue_full);
}

TEST_F(StreamConnect, MayOutliveLoop) {
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  stream_.write("lost");
  listener_ = Listener();
  owned_.reset();
  EXPECT_FALSE(stream_.is_open());
  EXPECT_FALSE(stream_.is_connecting());
}

TEST_F(StreamConnect, OnConnectedFollowsCallbackThatRunsLoop) {
  caller_.when_drained = [&] {
    for (int i = 0; i < 20; ++i) loop_.run(Run::no_wait);
    EXPECT_EQ(caller_.log, "drained ");
  };
  EXPECT_FALSE(stream_.connect(loop_, listener_.address(), caller_));
  EXPECT_TRUE(stream_.set_limits({.low = 0, .high = 10}));
  EXPECT_TRUE(stream_.write(std::string(20, 'x')));
  EXPECT_TRUE(stream_.set_limits({.low = 100, .high = 100}));
  turn_until([&] { return caller_.log == "drained connected "; });
  turn_until([&] { return received().size() == 20; });
}

TEST_F(StreamConnect, ReportsOutOfMemory) {
  for (std::uint64_t nth = 1; nth < 4; ++nth) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    const std::error_code error = stream_.connect(loop_, listener_.address(), caller_);
    EXPECT_TRUE(!error || error == std::errc::not_enough_memory);
    stream_ = Stream();
  }
}

// ---- function handlers, and options

class Functions : public ::testing::Test {
 protected:
  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  Result<std::pair<Stream, Stream>> pair_ = Stream::memory_pair(loop_);
  Stream& left_ = pair_->first;
  Stream& right_ = pair_->second;
  std::string log_;
};

TEST_F(Functions, AreCalledLikeHandler) {
  EXPECT_FALSE(left_.start({.on_data =
                                [&](Bytes bytes) {
                                  log_ += text_of(bytes);
                                  return bytes.size();
                                },
                            .on_end = [&] { log_ += " end"; },
                            .on_closed = [&](std::error_code) { log_ += " closed"; }}));
  EXPECT_FALSE(right_.start({}));
  right_.write("hello");
  right_.end();
  run_until(loop_, [&] { return log_ == "hello end closed"; });
}

TEST_F(Functions, AreOptionalAndInputIsThenDiscarded) {
  EXPECT_FALSE(left_.start(StreamCallbacks{}));
  right_.write("hello");
  EXPECT_FALSE(right_.start({.on_closed = [&](std::error_code) { log_ += "closed"; }}));
  right_.end();
  run_until(loop_, [&] { return log_ == "closed"; });
}

TEST_F(Functions, MayReplaceThemselvesAndEndStream) {
  auto token = std::make_shared<int>(1);
  EXPECT_FALSE(left_.start({.on_data = [this, token](Bytes bytes) {
    EXPECT_FALSE(left_.start({.on_data = [this, token](Bytes more) {
      const auto kept = token;
      left_ = Stream();
      log_ += text_of(more);
      return more.size();
    }}));
    log_ += std::to_string(*token);
    return bytes.size();
  }}));
  right_.write("a");
  run_until(loop_, [&] { return log_ == "1"; });
  EXPECT_EQ(token.use_count(), 2);
  right_.write("b");
  run_until(loop_, [&] { return log_ == "1b"; });
  run_turns(loop_, 3);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(Functions, AreDestroyedWithConnection) {
  auto token = std::make_shared<int>(1);
  EXPECT_FALSE(left_.start({.on_closed = [token](std::error_code) {}}));
  run_turns(loop_, 3);
  EXPECT_EQ(token.use_count(), 2);
  left_.abort();
  left_ = Stream();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(Functions, SurviveRelease) {
  auto pair = Stream::socket_pair(loop_);
  int fd = -1;
  auto token = std::make_shared<int>(7);
  EXPECT_FALSE(pair->first.start({.on_data = [&, token](Bytes bytes) {
    fd = pair->first.release().value_or(-1);
    log_ = std::to_string(*token);
    return bytes.size();
  }}));
  pair->second.write("x");
  run_until(loop_, [&] { return !log_.empty(); });
  EXPECT_EQ(log_, "7");
  ASSERT_GE(fd, 0);
  close_descriptors({&fd, 1});
}

TEST_F(Functions, AcceptAllOptionsAtOnce) {
  RateGroup group({{1000, 0}, {}});
  std::error_code error;
  Recorder recorder;
  EXPECT_FALSE(left_.start(recorder, {.limits = {.low = 1, .high = 2, .max = 3},
                                      .write_timeout = 1h,
                                      .deadline = 10ms,
                                      .rate_group = &group,
                                      .half_open = true}));
  EXPECT_EQ(group.members(), 1u);
  run_until(loop_, [&] { return recorder.closed_calls == 1; });
  EXPECT_EQ(recorder.error, Error::deadline);
  EXPECT_EQ(left_.start(recorder, {.write_timeout = 1h}), error);  // It is closed already.
}

}  // namespace
}  // namespace spate::testing
