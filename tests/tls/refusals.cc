// System calls that fail below TLS.
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <system_error>

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

}  // namespace
}  // namespace spate::testing
