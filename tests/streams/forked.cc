// A child of a fork that lets its objects go, Streams first and then the loop, as C++ orders it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "streams/harness.h"

namespace spate::testing {
namespace {

class ForkedStreams : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(TheLoopGoesFirst, ForkedStreams, ::testing::Bool());

// Its destructors said goodbye to the parent's peers, or reset them.
TEST_P(ForkedStreams, LeaveTheParentsConnectionsAlone) {
  auto loop = std::move(*Loop::create());
  auto pair = std::move(*Stream::socket_pair(*loop));
  auto busy = std::move(*make_pair(*loop, Kind::tcp));
  Recorder log;
  Recorder busy_log;
  pair.second.start(log);
  busy.second.start(busy_log);
  busy.second.pause();
  const std::string queued = pattern(8'000'000);
  EXPECT_TRUE(busy.first.write(queued));
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (GetParam()) loop.reset();
    pair = {};
    busy = {};
    loop.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  linger lingers{};
  socklen_t size = sizeof(lingers);
  ASSERT_EQ(::getsockopt(busy.first.fd(), SOL_SOCKET, SO_LINGER, &lingers, &size), 0);
  EXPECT_EQ(lingers.l_onoff, 0) << "the parent's own end would be a reset";
  EXPECT_TRUE(pair.first.write("still here"));
  busy.second.resume();
  busy.first.end();
  run_until(*loop, [&] { return busy_log.received.size() == queued.size(); });
  EXPECT_EQ(log.received, "still here");
  EXPECT_EQ(log.log, "");
  EXPECT_EQ(busy_log.error, std::error_code());
}

}  // namespace
}  // namespace spate::testing
