// Bytes that are written to many Streams: each Stream receives all of them, in order. They are
// copied once for all Streams.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "streams/harness.h"
#include "support/sanitizers.h"

namespace spate::testing {
namespace {

// A Stream on a socket whose other end sees each system call as a packet.
class Subscriber {
 public:
  explicit Subscriber(Loop& loop) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    stream = Stream::adopt(loop, fds[0]).value();
    stream.start(log);
    peer_ = fds[1];
  }
  ~Subscriber() { ::close(peer_); }

  std::vector<std::string> packets() const {
    std::vector<std::string> packets;
    std::string bytes(256 * 1024, ' ');
    for (ssize_t size = 1; size > 0;) {
      size = ::recv(peer_, bytes.data(), bytes.size(), 0);
      if (size > 0) packets.push_back(bytes.substr(0, static_cast<std::size_t>(size)));
    }
    return packets;
  }
  std::string received() const {
    std::string all;
    for (const std::string& packet : packets()) all += packet;
    return all;
  }

  void say(std::string_view text) const {
    EXPECT_EQ(::send(peer_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  // Fills the kernel's buffer, so that later bytes must wait.
  void fill_up() const {
    while (::send(stream.fd(), "full", 4, 0) > 0) {
    }
  }

  Stream stream;
  Recorder log;

 private:
  int peer_;
};

class Publishing : public ::testing::Test {
 protected:
  explicit Publishing(int subscribers = 3) : loop_(Loop::create().value()) {
    for (int i = 0; i < subscribers; ++i) subscribers_.emplace_back(*loop_);
  }

  // From memory that each message occupies in turn.
  void publish(std::string_view message) {
    std::ranges::copy(message, message_.begin());
    for (Subscriber& subscriber : subscribers_)
      EXPECT_TRUE(subscriber.stream.write(std::string_view(message_).substr(0, message.size())));
  }
  void in_a_callback(const std::function<void()>& call) {
    Timer timer(*loop_, [&call] { call(); });
    timer.start(Nanos{0});
    run_turns(*loop_, 1);
  }

  std::unique_ptr<Loop> loop_;
  std::list<Subscriber> subscribers_;
  std::string message_ = std::string(8 * 1024, ' ');
};

using Packets = std::vector<std::string>;

std::string numbered(int number, std::size_t size) {
  std::string message = std::to_string(number) + " ";
  return message + pattern(size - message.size());
}

TEST_F(Publishing, ReachesAllStreamsInOneSegment) {
  in_a_callback([this] {
    for (const char* message : {"one, ", "two, ", "three"}) publish(message);
    for (Subscriber& subscriber : subscribers_) EXPECT_EQ(subscriber.stream.queued(), 15u);
  });
  for (Subscriber& subscriber : subscribers_)
    EXPECT_EQ(subscriber.packets(), Packets{"one, two, three"});
}

TEST_F(Publishing, SendsChangedBytesAtSameAddress) {
  in_a_callback([this] {
    publish("same size 1, ");
    for (Subscriber& subscriber : subscribers_) {
      message_.replace(10, 1, std::string(1, subscriber.stream.fd() % 2 == 0 ? 'e' : 'o'));
      EXPECT_TRUE(subscriber.stream.write(std::string_view(message_).substr(0, 13)));
    }
    publish("same size 2, ");
  });
  for (Subscriber& subscriber : subscribers_) {
    const std::string own = subscriber.stream.fd() % 2 == 0 ? "e" : "o";
    EXPECT_EQ(subscriber.received(), "same size 1, same size " + own + ", same size 2, ");
  }
}

TEST_F(Publishing, SendsMessagesOfSeveralParts) {
  std::string expected;
  in_a_callback([&] {
    for (int i = 0; i < 50; ++i) {
      const std::string head = "head of " + std::to_string(i) + " ";
      const std::string body = numbered(i, 700 + static_cast<std::size_t>(i));
      for (Subscriber& subscriber : subscribers_)
        EXPECT_TRUE(subscriber.stream.write(
            std::initializer_list<Bytes>{bytes_of(head), bytes_of(body), bytes_of("end")}));
      expected += head + body + "end";
    }
  });
  for (Subscriber& subscriber : subscribers_) {
    EXPECT_TRUE(subscriber.packets() == Packets{expected});
  }
}

// More than the copies for one stream may use.
TEST_F(Publishing, IsLimitedInSize) {
  std::string expected;
  in_a_callback([&] {
    for (int i = 0; i < 20; ++i) {
      publish(numbered(i, 4000));
      expected += numbered(i, 4000);
    }
  });
  for (Subscriber& subscriber : subscribers_) {
    const Packets packets = subscriber.packets();
    std::string all;
    for (const std::string& packet : packets) {
      EXPECT_LE(packet.size(), 64 * 1024 + 4000u);
      all += packet;
    }
    EXPECT_EQ(all, expected);
  }
  EXPECT_EQ(subscribers_.back().packets(), Packets{});
}

TEST_F(Publishing, CorksMoreThanSingleStream) {
  in_a_callback([this] {
    for (int i = 0; i < 15; ++i) publish(numbered(i, 4000));
  });
  EXPECT_EQ(subscribers_.back().packets().size(), 1u);
}

TEST_F(Publishing, RespectsLimitsOfEachStream) {
  Subscriber& small = subscribers_.back();
  EXPECT_TRUE(
      small.stream.set_limits({.low = 0, .high = 10, .max = 20, .when_full = WhenFull::drop}));
  in_a_callback([&] {
    for (int i = 0; i < 10; ++i) publish("eight by");
    EXPECT_FALSE(small.stream.is_full());
    const FullKernel full;
    publish("eight by");
    publish("eight by");
    EXPECT_TRUE(small.stream.is_full());
    EXPECT_FALSE(small.stream.write("eight by"));
  });
  run_turns(*loop_, 2);
  EXPECT_EQ(small.packets(), Packets(6, "eight byeight by"));
  EXPECT_EQ(small.log.log, "drained ");
}

TEST_F(Publishing, SkipsEndedStreams) {
  Subscriber& ended = subscribers_.back();
  in_a_callback([&] {
    publish("first");
    ended.stream.end();
    EXPECT_FALSE(ended.stream.write(std::string_view(message_).substr(0, 5)));
  });
  EXPECT_EQ(ended.received(), "first");
}

TEST_F(Publishing, FollowsOwnWritesOfStream) {
  Subscriber& other = subscribers_.back();
  std::string expected;
  in_a_callback([&] {
    for (int i = 0; i < 30; ++i) {
      publish(numbered(i, 600));
      const std::string own = " own " + std::to_string(i) + " ";
      EXPECT_TRUE(other.stream.write(own));
      expected += numbered(i, 600) + own;
    }
  });
  EXPECT_EQ(other.received(), expected);
}

TEST_F(Publishing, FollowsWritesOfCurrentCallback) {
  Subscriber& first = subscribers_.front();
  first.log.use = [&](Bytes bytes) {
    EXPECT_TRUE(first.stream.write("own, "));
    publish("one, ");
    publish("two");
    return bytes.size();
  };
  first.say("go");
  run_turns(*loop_, 1);
  EXPECT_EQ(first.packets(), Packets{"own, one, two"});
  EXPECT_EQ(subscribers_.back().packets(), Packets{"one, two"});
}

// Bytes that the kernel did not take arrive too, in one piece or in many.
TEST_F(Publishing, ArrivesWholeDespiteShortWrites) {
  std::string expected;
  in_a_callback([&] {
    const FullKernel full;
    for (int i = 0; i < 100; ++i) {
      publish(numbered(i, 1000));
      expected += numbered(i, 1000);
      if (i % 10 == 3) {
        EXPECT_TRUE(subscribers_.back().stream.write("!"));
      }
    }
  });
  std::string with_marks;
  for (int i = 0; i < 100; ++i) with_marks += numbered(i, 1000) + (i % 10 == 3 ? "!" : "");
  for (Subscriber& subscriber : subscribers_) {
    const bool is_marked = &subscriber == &subscribers_.back();
    std::string all;
    run_until(*loop_, [&] {
      all += subscriber.received();
      return all.size() >= (is_marked ? with_marks : expected).size();
    });
    EXPECT_EQ(all, is_marked ? with_marks : expected);
  }
}

TEST_F(Publishing, ReachesAllStreamsDespiteOutOfMemory) {
  for (std::uint64_t nth = 1; nth < 40; ++nth) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    std::vector<std::string> expected(subscribers_.size());
    in_a_callback([&] {
      const FaultScope scope(plan);
      for (int i = 0; i < 40; ++i) {
        const std::string message = numbered(i, 2000);
        auto owed = expected.begin();
        for (Subscriber& subscriber : subscribers_) {
          if (subscriber.stream.write(message)) *owed += message;
          ++owed;
        }
      }
    });
    auto owed = expected.begin();
    for (Subscriber& subscriber : subscribers_) EXPECT_EQ(subscriber.received(), *owed++) << nth;
  }
}

class PublishingToMany : public Publishing {
 protected:
  PublishingToMany() : Publishing(100) {}
  static std::size_t allocated() { return ::mallinfo2().uordblks; }
};

TEST_F(PublishingToMany, UsesMemoryForOneMessage) {
  in_a_callback([this] { publish("the first, which makes room"); });
  in_a_callback([this] {
    const std::size_t before = allocated();
    for (int i = 0; i < 12; ++i) publish(numbered(i, 4000));
    if (!kIsSanitized) {
      EXPECT_LT(allocated(), before + 300'000) << "of 4,800,000 that are queued";
    }
  });
  for (Subscriber& subscriber : subscribers_) EXPECT_EQ(subscriber.received().size(), 48'027u);
}

// Each has many shared messages queued, and then one that only this subscriber gets.
TEST_F(PublishingToMany, RetainsOnlyQueuedData) {
  Subscriber one(*loop_);
  Subscriber other(*loop_);
  for (const Subscriber& subscriber : subscribers_) subscriber.fill_up();
  const std::string small = pattern(600);
  const std::size_t before = allocated();
  for (Subscriber& subscriber : subscribers_) {
    in_a_callback([&] {
      for (int i = 0; i < 15; ++i) {
        const std::string message = numbered(i, 4000);
        EXPECT_TRUE(one.stream.write(message) && other.stream.write(message));
      }
      EXPECT_TRUE(one.stream.write(small) && subscriber.stream.write(small));
    });
    EXPECT_EQ(one.received().size(), 60'600u);
    EXPECT_EQ(other.received().size(), 60'000u);
    EXPECT_EQ(subscriber.stream.queued(), 600u);
  }
  if (!kIsSanitized) {
    EXPECT_LT(allocated(), before + 1'000'000);
  }
  for (Subscriber& subscriber : subscribers_) {
    std::string all = subscriber.received();
    run_turns(*loop_, 1);
    all += subscriber.received();
    EXPECT_TRUE(all.ends_with("full" + small));
  }
}

}  // namespace
}  // namespace spate::testing
