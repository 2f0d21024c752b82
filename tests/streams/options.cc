// Queries of the socket under a Stream, and handing the socket on.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "streams/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

using Options = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Options, all_kinds(), name_of);
using TcpOptions = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, TcpOptions, ::testing::Values(Kind::tcp), name_of);
using BareSocketOptions = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, BareSocketOptions, kinds_where(has_bare_socket), name_of);

int option_of(const Stream& stream, int level, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  EXPECT_EQ(::getsockopt(stream.fd(), level, name, &value, &size), 0);
  return value;
}

TEST_P(Options, TcpOptionsApplyOnlyToTcp) {
  const bool is_tcp = GetParam() == Kind::tcp;
  const std::error_code errors[] = {left_.set_no_delay(false), left_.set_quick_ack(true),
                                    left_.set_user_timeout(1500ms),
                                    left_.set_keep_alive(30s, 5s, 4)};
  for (const std::error_code& error : errors) EXPECT_EQ(!error, is_tcp) << error.message();
  if (!is_tcp) return;
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_USER_TIMEOUT), 1500);
  EXPECT_EQ(option_of(left_, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_KEEPIDLE), 30);
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_KEEPCNT), 4);
}

TEST_P(TcpOptions, TimesAreRoundedUp) {
  EXPECT_FALSE(left_.set_user_timeout(1500ms + 1ns));
  EXPECT_FALSE(left_.set_keep_alive(30s + 1ns, 1ms, 4));
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_USER_TIMEOUT), 1501);
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_KEEPIDLE), 31);
  EXPECT_EQ(option_of(left_, IPPROTO_TCP, TCP_KEEPINTVL), 1);
}

TEST_P(TcpOptions, InvalidValuesAreRejectedWithoutEffect) {
  EXPECT_TRUE(left_.set_keep_alive(-1s, 5s, 4));
  EXPECT_TRUE(left_.set_keep_alive(30s, 5s, 1'000'000));
  EXPECT_EQ(option_of(left_, SOL_SOCKET, SO_KEEPALIVE), 0);
}

TEST_P(Options, KernelBuffersAreSetForSockets) {
  const std::error_code error = left_.set_kernel_buffers(20'000, 0);
  EXPECT_EQ(!error, !is_in_memory());
  if (error) return;
  EXPECT_GE(option_of(left_, SOL_SOCKET, SO_SNDBUF), 20'000);
  EXPECT_LE(option_of(left_, SOL_SOCKET, SO_SNDBUF), 80'000);
}

TEST_P(Options, AddressesAreReportedIfPresent) {
  const bool is_tcp = GetParam() == Kind::tcp;
  EXPECT_EQ(left_.local_address().is_ip(), is_tcp);
  EXPECT_EQ(left_.peer_address().is_ip(), is_tcp);
  if (is_tcp) {
    EXPECT_EQ(left_.local_address(), right_.peer_address());
  }
}

TEST_P(Options, SocketMayBeReleasedToAnotherLoop) {
  EXPECT_TRUE(right_.write("before "));
  run_until(loop_, [&] { return left_log_.received == "before "; });
  const std::uint64_t before = loop_.metrics().kernel_calls.modify;
  const Result<int> released = left_.release();
  if (!has_bare_socket()) {
    EXPECT_EQ(released.error(), std::errc::operation_not_supported);
    EXPECT_TRUE(left_.is_open());
    return;
  }
  ASSERT_TRUE(released);
  EXPECT_EQ(loop_.metrics().kernel_calls.modify, before + 1)
      << "at once: it may be closed elsewhere";
  EXPECT_FALSE(left_.is_open());
  const std::unique_ptr<Loop> other = *Loop::create();
  Recorder log;
  Result<Stream> stream = Stream::adopt(*other, *released);
  ASSERT_TRUE(stream);
  stream->start(log);
  EXPECT_TRUE(right_.write("after"));
  run_until(*other, [&] { return log.received == "after"; });
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(BareSocketOptions, SocketIsNotReleasedWithQueuedData) {
  EXPECT_TRUE(left_.write(std::string(20'000'000, 'x')));
  EXPECT_EQ(left_.release().error(), std::errc::device_or_resource_busy);
  run_until(loop_, [&] { return left_.queued() == 0; });
  left_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(right_.write("unread"));
  run_until(loop_, [&] { return left_log_.data_calls == 1; });
  EXPECT_EQ(left_.release().error(), std::errc::device_or_resource_busy);
  left_.abort();
  EXPECT_EQ(left_.release().error(), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace spate::testing
