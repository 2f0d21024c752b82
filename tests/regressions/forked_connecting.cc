// Attempts to connect that are under way at a fork: they belong to the parent.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

class ForkedConnecting : public ::testing::Test {
 protected:
  Address server() const { return listener_.address(); }
  // Runs `work` in a child, after after_fork(), and returns the child's status. The child must not
  // accept the connections.
  template <class Work>
  int in_child(Work work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      if (loop_->after_fork()) ::_exit(10);
      listener_ = Listener();
      const bool is_right = work();
      ::_exit(is_right ? 0 : 11);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return status;
  }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  Recorder log_;
  Stream accepted_;
  Recorder accepted_log_;
  Listener listener_ = std::move(*Listener::create(*loop_, Address::loopback_ipv4(0),
                                                   [this](Stream stream, const Address&) {
                                                     accepted_ = std::move(stream);
                                                     accepted_.start(accepted_log_);
                                                   }));
};

// The child connected, sent a copy of the queue, and shut down the parent's connection.
TEST_F(ForkedConnecting, StreamIsLeftAloneWhenChildDestroysIt) {
  Stream stream;
  ASSERT_FALSE(stream.connect(*loop_, server(), log_));
  EXPECT_TRUE(stream.write("hello"));
  const int status = in_child([&] {
    stream = Stream();
    run_turns(*loop_, 20);
    return true;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(stream.write(" again"));
  run_until(*loop_, [&] { return accepted_log_.received.size() >= 11; });
  run_turns(*loop_, 3);
  EXPECT_EQ(accepted_log_.received, "hello again");
  EXPECT_EQ(accepted_log_.log, "");
  EXPECT_EQ(log_.closed_calls, 0);
}

TEST_F(ForkedConnecting, StreamDoesNotConnectInChild) {
  Stream stream;
  ASSERT_FALSE(stream.connect(*loop_, server(), log_));
  EXPECT_TRUE(stream.write("hello"));
  const int status = in_child([&] {
    run_turns(*loop_, 20);
    return stream.is_connecting() && stream.queued() == 0 && log_.closed_calls == 0;
  });
  EXPECT_EQ(status, 0);
  run_until(*loop_, [&] { return accepted_log_.received.size() >= 5; });
  EXPECT_EQ(accepted_log_.received, "hello");
}

TEST_F(ForkedConnecting, AttemptDoesNotContinueInChild) {
  Stream made;
  int calls = 0;
  const Connecting connecting = connect(*loop_, server(), [&](Result<Stream> stream) {
    ++calls;
    made = std::move(*stream);
  });
  const int status = in_child([&] {
    run_turns(*loop_, 20);
    return calls == 0 && !connecting.is_pending();
  });
  EXPECT_EQ(status, 0);
  run_until(*loop_, [&] { return calls == 1; });
  EXPECT_TRUE(made.write("hello"));
  run_until(*loop_, [&] { return accepted_log_.received.size() >= 5; });
  EXPECT_EQ(accepted_log_.received, "hello");
}

}  // namespace
}  // namespace spate::testing
