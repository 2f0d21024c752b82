// Conditions that last until they are cleared: errors in a socket's queue, and input that cannot be
// read. The loop must not spin on them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "spate/net/listener.h"
#include "spate/net/relay.h"
#include "streams/datagram_harness.h"
#include "streams/harness.h"
#include "support/closed_port.h"

namespace spate::testing {
namespace {

// Counts turns with an event. An idle loop makes no turn without waiting.
std::uint64_t turns_within(Loop& loop, Nanos span) {
  const std::uint64_t before = loop.iteration();
  loop.run_for(span);
  return loop.iteration() - before;
}
int bind_to(int fd, const Address& address) {
  return ::bind(fd, static_cast<const sockaddr*>(address.data()),
                static_cast<socklen_t>(address.size()));
}
constexpr Nanos kSpan{50'000'000};
constexpr std::uint64_t kFew = 30;

class QueuedErrors : public DatagramTest, public ::testing::WithParamInterface<std::string_view> {
 protected:
  // A socket that queues the errors of its packets.
  Datagram open_with_queue(int family) {
    const bool is_ipv6 = family == AF_INET6;
    const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const Address here = is_ipv6 ? Address::loopback_ipv6(0) : Address::loopback_ipv4(0);
    EXPECT_EQ(bind_to(fd, here), 0);
    const int on = 1;
    EXPECT_EQ(::setsockopt(fd, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
                           is_ipv6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof(on)),
              0);
    return must(Datagram::adopt(*backend_, fd));
  }

  std::unique_ptr<Loop> backend_ = must(Loop::create({.backend = GetParam()}));
};

INSTANTIATE_TEST_SUITE_P(Backends, QueuedErrors, ::testing::ValuesIn(Loop::backends()),
                         [](const auto& backend) { return std::string(backend.param); });

TEST_P(QueuedErrors, AreReportedOnceAndRemoved) {
  for (const int family : {AF_INET, AF_INET6}) {
    Collector log;
    Datagram socket = open_with_queue(family);
    socket.start(log);
    EXPECT_FALSE(socket.send(bytes_of("x"), family == AF_INET6 ? closed_ipv6() : closed_ipv4()));
    run_until(*backend_, [&] { return log.errors > 0; });
    EXPECT_EQ(log.error, std::errc::connection_refused);
    EXPECT_LT(turns_within(*backend_, kSpan), kFew);
    EXPECT_EQ(log.errors, 1);
  }
}

TEST_P(QueuedErrors, AreAllReported) {
  Collector log;
  Datagram socket = open_with_queue(AF_INET);
  for (int i = 0; i < 5; ++i) std::ignore = socket.send(bytes_of("x"), closed_ipv4());
  socket.start(log);
  run_until(*backend_, [&] { return log.errors > 0; });
  EXPECT_LT(turns_within(*backend_, kSpan), kFew);
  EXPECT_GE(log.errors, 1);
  EXPECT_EQ(log.error, std::errc::connection_refused);
}

TEST_P(QueuedErrors, MayDestroySocketInTheirCallback) {
  Collector log;
  Datagram socket = open_with_queue(AF_INET);
  log.then = [&] { socket = Datagram(); };
  for (int i = 0; i < 5; ++i) std::ignore = socket.send(bytes_of("x"), closed_ipv4());
  socket.start(log);
  run_until(*backend_, [&] { return log.errors > 0; });
  turns_within(*backend_, kSpan);
  EXPECT_EQ(log.errors, 1);
}

// The kernel queues a notice when it has sent each piece.
TEST_P(QueuedErrors, TimestampNoticesDoNotKeepStreamAwake) {
  Listener listener;
  Stream here, there;
  Recorder here_log, there_log;
  listener = must(Listener::create(*backend_, Address::loopback_ipv4(0),
                                   [&](Stream stream, const Address&) {
                                     there = std::move(stream);
                                     there.start(there_log);
                                   }));
  ASSERT_FALSE(here.connect(*backend_, listener.address(), here_log));
  run_until(*backend_, [&] { return !here.is_connecting() && there.is_open(); });
  const int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  ASSERT_EQ(::setsockopt(here.fd(), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)), 0);
  here.write("hello");
  run_until(*backend_, [&] { return there_log.received == "hello"; });
  EXPECT_LT(turns_within(*backend_, kSpan), kFew);
  there.write("back");
  run_until(*backend_, [&] { return here_log.received == "back"; });
}

// ---- descriptors that are only written

class WriteOnly : public ::testing::TestWithParam<std::string_view> {
 protected:
  // Copies to it, as in guide/relay.md, with a pause between the pieces.
  void expect_copied(int fd) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    std::optional<RelayResult> result;
    const Relaying copying =
        copy(must(Stream::adopt(*loop_, pipe[0])), must(Stream::adopt(*loop_, fd)),
             [&](const RelayResult& told) { result = told; });
    EXPECT_EQ(::write(pipe[1], "hello", 5), 5);
    EXPECT_LT(turns_within(*loop_, kSpan), kFew);
    EXPECT_FALSE(result);
    EXPECT_EQ(::write(pipe[1], " world", 6), 6);
    EXPECT_LT(turns_within(*loop_, kSpan), kFew);
    ::close(pipe[1]);
    run_until(*loop_, [&] { return result.has_value(); });
    EXPECT_FALSE(result->error) << result->error.message();
    EXPECT_EQ(result->forth, 11u);
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create({.backend = GetParam()}));
};

INSTANTIATE_TEST_SUITE_P(Backends, WriteOnly, ::testing::ValuesIn(Loop::backends()),
                         [](const auto& backend) { return std::string(backend.param); });

TEST_P(WriteOnly, FileDoesNotKeepLoopAwake) {
  char name[] = "/tmp/spate_write_only_XXXXXX";
  const int both = ::mkstemp(name);
  expect_copied(::open(name, O_WRONLY | O_CLOEXEC));
  char text[32] = {};
  EXPECT_EQ(::pread(both, text, sizeof(text), 0), 11);
  EXPECT_STREQ(text, "hello world");
  ::close(both);
  ::unlink(name);
}

TEST_P(WriteOnly, NullDeviceDoesNotKeepLoopAwake) {
  expect_copied(::open("/dev/null", O_WRONLY | O_CLOEXEC));
}

TEST_P(WriteOnly, TerminalWithInputDoesNotKeepLoopAwake) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0)
    GTEST_SKIP() << "skipped: no pseudoterminals here";
  const int terminal = ::open(::ptsname(master), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(::write(master, "typed\n", 6), 6);
  expect_copied(terminal);
  ::close(master);
}

}  // namespace
}  // namespace spate::testing
