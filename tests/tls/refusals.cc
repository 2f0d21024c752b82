// System calls that fail below TLS.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fault.h"
#include "tls/harness.h"

namespace spate::testing {
namespace {

struct EndOfTls final : StreamHandler {
  std::optional<std::error_code> error;
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code why) override { error = why; }
};

// The engine has encrypted the bytes, but the kernel has not taken them: then they are not sent
// yet.
TEST_F(TlsTest, TransportErrorIsReportedAndDataRemainsUnsent) {
  Handshake both = shake(client(), server());
  ASSERT_TRUE(both.client && both.server);
  EndOfTls end;
  both.client->start(end);
  FaultPlan plan;
  plan.fail_nth(SystemCall::send, 1, EAGAIN).fail_nth(SystemCall::send, 2, ENOBUFS);
  const FaultScope scope(plan);
  EXPECT_TRUE(both.client->write("hello"));
  for (int i = 0; i < 100 && !end.error; ++i) loop_->run(Run::no_wait);
  EXPECT_EQ(plan.failures(SystemCall::send), 2u);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(*end.error, std::errc::no_buffer_space);
}

// Makes one call fail during a handshake. Returns false when fewer calls are made.
bool shakes_without(SystemCall call, std::size_t number, const TlsContext& client,
                    const TlsContext& server) {
  const auto loop = std::move(*Loop::create({.backend = "epoll"}));
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const int far = ::fcntl(fds[1], F_DUPFD_CLOEXEC, 500);  // The loop's table must grow for it.
  ::close(fds[1]);
  FaultPlan plan;
  plan.fail_nth(call, number, ENOMEM);
  const FaultScope scope(plan);
  auto left = Stream::adopt(*loop, fds[0]);
  auto right = Stream::adopt(*loop, far);
  if (!left) ::close(fds[0]);
  if (!right) ::close(far);
  if (!left || !right) return true;
  right->write("x");  // Then its Stream waits for the peer's end when it is destroyed.
  EXPECT_EQ(shake_hands(*loop, {std::move(*left), std::move(*right)}, client, server).calls, 2);
  for (int i = 0; i < 10; ++i) loop->run(Run::no_wait);
  return plan.failures(call) > 0;
}

// The peer's bytes may come after a failure, while the Stream is being closed.
TEST_F(TlsTest, HandshakeFailsOnceWhenAnyCallFails) {
  for (const SystemCall call : {SystemCall::epoll_ctl, SystemCall::allocate}) {
    std::size_t number = 1;
    while (shakes_without(call, number, client(), server())) ++number;
    EXPECT_GT(number, 1u);
  }
}

}  // namespace
}  // namespace spate::testing
