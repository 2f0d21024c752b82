// Writes to a Stream in callbacks of other objects: they are corked, and sent before the loop
// waits.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

// A Stream on a socket whose other end sees each system call as a packet.
class Gathering : public ::testing::Test {
 protected:
  explicit Gathering(const LoopOptions& options = {}) : loop_(Loop::create(options).value()) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    stream_ = Stream::adopt(*loop_, fds[0]).value();
    stream_.start(log_);
    peer_ = fds[1];
  }
  ~Gathering() override { ::close(peer_); }

  // Calls `call` in another object's callback.
  void in_a_callback(const std::function<void()>& call) {
    Timer timer(*loop_, [&call] { call(); });
    timer.start(Nanos{0});
    run_turns(*loop_, 1);
  }
  // Calls `call` in this turn, after the current callback.
  void soon(std::function<void()> call) {
    soon_ = std::move(call);
    node_.context = &soon_;
    node_.callback = [](void* context, Node&, Events) {
      (*static_cast<std::function<void()>*>(context))();
    };
    loop_->feed(node_, Events::custom);
  }
  std::vector<std::string> packets() const {
    std::vector<std::string> packets;
    char bytes[64 * 1024];
    for (ssize_t size = 1; size > 0;) {
      size = ::recv(peer_, bytes, sizeof(bytes), 0);
      if (size > 0) packets.emplace_back(bytes, static_cast<std::size_t>(size));
    }
    return packets;
  }
  using Packets = std::vector<std::string>;

  std::unique_ptr<Loop> loop_;
  Stream stream_;
  Recorder log_;
  int peer_ = -1;

 private:
  std::function<void()> soon_;
  Node node_{};
};

TEST_F(Gathering, SendsWritesOfOtherCallbacksTogether) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("one, "));
    EXPECT_TRUE(stream_.write("two, "));
    EXPECT_EQ(stream_.queued(), 10u);
    EXPECT_EQ(packets(), Packets{});
    soon([this] { EXPECT_TRUE(stream_.write("three")); });
  });
  EXPECT_EQ(packets(), Packets{"one, two, three"});
  EXPECT_EQ(stream_.queued(), 0u);
}

TEST_F(Gathering, SendsAtOnceOutsideOfRun) {
  EXPECT_TRUE(stream_.write("one"));
  EXPECT_TRUE(stream_.write("two"));
  EXPECT_EQ(packets(), (Packets{"one", "two"}));
}

TEST_F(Gathering, WritesSegmentsTogether) {
  const std::string large = pattern(5000);
  const Bytes pieces[] = {bytes_of("a"), Bytes(), bytes_of(large), bytes_of("b")};
  EXPECT_TRUE(stream_.write(pieces));
  EXPECT_EQ(packets(), Packets{"a" + large + "b"});
  in_a_callback([&] {
    EXPECT_TRUE(stream_.write("gathered "));
    EXPECT_TRUE(stream_.write(pieces));
  });
  EXPECT_EQ(packets(), Packets{"gathered a" + large + "b"});
  log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(stream_.write("own ") && stream_.write(pieces));
    EXPECT_EQ(packets(), Packets{"own a" + large + "b"});
    return bytes.size();
  };
  ASSERT_EQ(::send(peer_, "go", 2, 0), 2);
  run_turns(*loop_, 1);
  EXPECT_TRUE(stream_.set_limits({.low = 0, .high = 9, .max = 9, .when_full = WhenFull::drop}));
  EXPECT_FALSE(stream_.write(pieces));
  EXPECT_EQ(packets(), Packets{});
}

TEST_F(Gathering, SendsLargeWritesAtOnce) {
  const std::string large = pattern(5000);
  in_a_callback([&] {
    EXPECT_TRUE(stream_.write(large));
    EXPECT_EQ(packets(), Packets{large});
  });
}

TEST_F(Gathering, IsLimitedInSize) {
  const std::string part = pattern(4005);
  in_a_callback([&] {
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(stream_.write(part.substr(0, 4000 + i)));
    EXPECT_EQ(stream_.queued(), 0u);
    EXPECT_EQ(packets().size(), 1u);
  });
}

TEST_F(Gathering, IsNotFullBeforeFirstSend) {
  EXPECT_TRUE(stream_.set_limits({.low = 0, .high = 10, .max = 20, .when_full = WhenFull::drop}));
  in_a_callback([&] {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(stream_.write("eight by"));
    EXPECT_FALSE(stream_.is_full());
  });
  EXPECT_EQ(packets().size(), 5u);
  EXPECT_EQ(log_.log, "");
}

TEST_F(Gathering, HasRoomAfterSending) {
  EXPECT_TRUE(stream_.set_limits({.low = 0, .high = 20, .max = 20, .when_full = WhenFull::drop}));
  in_a_callback([&] {
    EXPECT_TRUE(stream_.write(pattern(15)));
    EXPECT_TRUE(stream_.write(pattern(15)));
    EXPECT_FALSE(stream_.write(pattern(21)));
  });
  EXPECT_EQ(packets(), (Packets{pattern(15), pattern(15)}));
}

TEST_F(Gathering, SendsBeforeNestedRun) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("question"));
    run_turns(*loop_, 1);
    EXPECT_EQ(packets(), Packets{"question"});
  });
}

TEST_F(Gathering, SendsOwnWritesWhenCallbackReturns) {
  Buffer buffer;
  ASSERT_TRUE(buffer.append("one, "));
  log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(stream_.write(std::move(buffer)));
    EXPECT_TRUE(stream_.write("two"));
    EXPECT_EQ(packets(), Packets{});
    soon([this] { EXPECT_EQ(packets(), Packets{"one, two"}); });
    return bytes.size();
  };
  ASSERT_EQ(::send(peer_, "go", 2, 0), 2);
  run_turns(*loop_, 1);
  EXPECT_EQ(log_.received, "go");
}

TEST_F(Gathering, SendsFileWithCorkedHeader) {
  const std::string content = pattern(20'000);
  log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(stream_.write("small: "));
    EXPECT_FALSE(stream_.send_file(file_with("a file"), 2, 4));
    EXPECT_TRUE(stream_.write(", larger: "));
    EXPECT_FALSE(stream_.send_file(file_with(content), 0, content.size()));
    return bytes.size();
  };
  ASSERT_EQ(::send(peer_, "go", 2, 0), 2);
  run_turns(*loop_, 1);
  EXPECT_EQ(packets(), (Packets{"small: file", ", larger: " + content}));
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("once more: "));
    EXPECT_FALSE(stream_.send_file(file_with("file"), 0, 4));
  });
  EXPECT_EQ(packets(), Packets{"once more: file"});
}

TEST_F(Gathering, SendsCorkedHeaderOfTruncatedFile) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("head"));
    EXPECT_FALSE(stream_.send_file(file_with(""), 0, 4));
  });
  EXPECT_EQ(packets(), Packets{"head"});
  run_turns(*loop_, 1);
  EXPECT_EQ(log_.error, std::error_code(ENODATA, std::system_category()));
}

TEST_F(Gathering, EndsAfterCorkedData) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("last"));
    stream_.end();
  });
  EXPECT_EQ(packets(), Packets{"last"});
  char byte;
  EXPECT_EQ(::recv(peer_, &byte, 1, 0), 0);
}

TEST_F(Gathering, SendsCorkedDataThoughStreamIsDestroyed) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("last"));
    stream_ = Stream();
  });
  EXPECT_EQ(packets(), Packets{"last"});
}

TEST_F(Gathering, DiscardsCorkedDataOnAbort) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("lost"));
    stream_.abort();
    stream_ = Stream();
  });
  EXPECT_EQ(packets(), Packets{});
}

TEST_F(Gathering, SendsCorkedDataBeforeRelease) {
  in_a_callback([this] {
    EXPECT_TRUE(stream_.write("before"));
    const Result<int> fd = stream_.release();
    ASSERT_TRUE(fd);
    ::close(*fd);
  });
  EXPECT_EQ(packets(), Packets{"before"});
}

TEST_F(Gathering, ReportsDisconnectedPeer) {
  ::close(std::exchange(peer_, -1));
  stream_.pause();
  in_a_callback([this] { EXPECT_TRUE(stream_.write("to nobody")); });
  run_turns(*loop_, 2);
  EXPECT_EQ(log_.log, "closed ");
  EXPECT_EQ(log_.error, std::errc::broken_pipe);
}

class GatheringOnABudget : public Gathering {
 protected:
  GatheringOnABudget() : Gathering({.budget = 1}) {}
};

TEST_F(GatheringOnABudget, SendsBeforeRunReturns) {
  in_a_callback([this] {
    soon([] {});
    EXPECT_TRUE(stream_.write("late"));
  });
  EXPECT_EQ(packets(), Packets{"late"});
}

}  // namespace
}  // namespace spate::testing
