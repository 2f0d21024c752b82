// Streams whose descriptor the backend refuses, and that failed or ended before.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "spate/error.h"
#include "streams/harness.h"
#include "support/scripted.h"

namespace spate::testing {
namespace {

class RefusedStream : public ::testing::Test {
 protected:
  RefusedStream() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_), 0);
    scripted_.backend->refusals[ends_[0]] = -EINVAL;
    stream_ = std::move(*Stream::adopt(*scripted_.loop, ends_[0]));
  }
  ~RefusedStream() override { close_peer(); }

  void close_peer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  void expect_closed(std::error_code error) {
    run_turns(*scripted_.loop, 5);
    EXPECT_EQ(log_.closed_calls, 1);
    EXPECT_EQ(log_.error, error);
    EXPECT_FALSE(stream_.is_open());
  }

  const std::error_code refusal_{EINVAL, std::system_category()};
  const std::error_code broken_pipe_{EPIPE, std::system_category()};
  ScriptedLoop scripted_;
  int ends_[2] = {-1, -1};
  Recorder log_;
  Stream stream_;
};

TEST_F(RefusedStream, ReportsRefusalByBackend) {
  stream_.start(log_);
  expect_closed(refusal_);
}

TEST_F(RefusedStream, ReportsFailedWriteBeforeStart) {
  close_peer();
  stream_.write("x");
  stream_.start(log_);
  expect_closed(broken_pipe_);
}

TEST_F(RefusedStream, ReportsFailedWriteAfterStart) {
  close_peer();
  stream_.start(log_);
  stream_.write("x");
  expect_closed(broken_pipe_);
}

TEST_F(RefusedStream, ReadsInputThatArrivedBeforeFailedWrite) {
  ASSERT_EQ(::write(ends_[1], "last", 4), 4);
  close_peer();
  stream_.start(log_);
  stream_.write("x");
  expect_closed(broken_pipe_);
  EXPECT_EQ(log_.received, "last");
}

TEST_F(RefusedStream, ReportsQueueFull) {
  ASSERT_TRUE(stream_.set_limits({.low = 10, .high = 10, .max = 100}));
  stream_.start(log_);
  stream_.write(std::string(1'000'000, 'x'));
  expect_closed(Error::queue_full);
}

TEST_F(RefusedStream, IsClosedAfterItHasEnded) {
  scripted_.backend->refusals.clear();
  stream_.start(log_);
  stream_.end();
  run_turns(*scripted_.loop, 3);
  scripted_.backend->refusals[ends_[0]] = -EINVAL;
  stream_.pause();
  run_turns(*scripted_.loop, 3);
  stream_.resume();
  expect_closed(refusal_);
}

TEST_F(RefusedStream, IsClosedWhileItLingers) {
  stream_.start(log_);
  stream_.write("x");
  stream_.close();
  expect_closed(refusal_);
}

}  // namespace
}  // namespace spate::testing
