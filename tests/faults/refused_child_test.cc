// A child whose pidfd is refused when no more loops may watch SIGCHLD.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <vector>

#include "base/fault.h"
#include "spate/child.h"
#include "spate/loop.h"
#include "spate/signal.h"

namespace spate {
namespace {

TEST(ChildWithRefusedPidfd, IsReportedWithoutFreeSignalSlot) {
  std::vector<std::unique_ptr<Loop>> loops;
  std::vector<std::unique_ptr<Signal>> signals;
  for (std::error_code error; !error;) {
    loops.push_back(std::move(*Loop::create()));
    signals.push_back(std::make_unique<Signal>(*loops.back(), [] {}));
    error = signals.back()->start(SIGCHLD);
    if (error) EXPECT_EQ(error, std::errc::no_space_on_device);
  }
  const std::unique_ptr<Loop> loop = *Loop::create({.backend = "epoll"});
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::usleep(50'000);
    ::_exit(3);
  }
  int code = -1;
  Child child(*loop, [&code](Child& ended, Events) { code = ended.exit_code(); });
  EXPECT_FALSE(child.start(pid));
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::epoll_ctl, 1, ENOSPC);
    const FaultScope scope(plan);
    EXPECT_FALSE(loop->run(Run::no_wait));
  }
  EXPECT_FALSE(loop->run_for(Nanos{30'000'000'000}));
  EXPECT_EQ(code, 3);
  EXPECT_FALSE(loop->has_work());
}

}  // namespace
}  // namespace spate
