// A child of a fork that lets its objects go, Streams first and then the loop, as C++ orders it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "streams/harness.h"

namespace spate::testing {
namespace {

// Its destructors said goodbye to the parent's peers, or reset them.
TEST(ForkedStreams, LeaveTheParentsConnectionsAlone) {
  auto loop = std::move(*Loop::create());
  auto pair = std::move(*Stream::socket_pair(*loop));
  auto busy = std::move(*Stream::socket_pair(*loop));
  Recorder log;
  Recorder busy_log;
  pair.second.start(log);
  busy.second.start(busy_log);
  busy.second.pause();
  const std::string queued = pattern(3'000'000);
  EXPECT_TRUE(busy.first.write(queued));
  const pid_t pid = ::fork();
  if (pid == 0) {
    pair = {};
    busy = {};
    loop.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pair.first.write("still here"));
  busy.second.resume();
  run_until(*loop, [&] { return busy_log.received.size() == queued.size(); });
  EXPECT_EQ(log.received, "still here");
  EXPECT_EQ(log.log + busy_log.log, "");
}

}  // namespace
}  // namespace spate::testing
