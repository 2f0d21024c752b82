// Failing system calls of a Watch: start() returns the error, or the directory is reported, or the
// watch ends; no descriptor stays.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/fault.h"
#include "system/open_fds.h"
#include "tests/support/system_error.h"
#include "tests/threads/watch_harness.h"

namespace spate::testing {
namespace {

using Log = std::vector<std::string>;

class WatchFaults : public WatchTest {};

TEST_F(WatchFaults, StartReturnsErrorOfEachCall) {
  struct Refusal {
    SystemCall call;
    int error;
  };
  const auto before = open_fds();
  for (const Refusal refusal :
       {Refusal{SystemCall::inotify_init, EMFILE}, Refusal{SystemCall::inotify_init, ENFILE},
        Refusal{SystemCall::inotify_init, ENOMEM}, Refusal{SystemCall::inotify_add_watch, ENOSPC},
        Refusal{SystemCall::inotify_add_watch, EACCES}, Refusal{SystemCall::epoll_ctl, ENOSPC}}) {
    FaultPlan plan;
    plan.fail_nth(refusal.call, 1, refusal.error);
    const FaultScope scope(plan);
    const Result<Watch> started = start(tree_.root(), {});
    ASSERT_FALSE(started) << refusal.error;
    EXPECT_EQ(started.error(), system_error(refusal.error));
    EXPECT_FALSE(loop_->has_work());
  }
  EXPECT_EQ(open_fds(), before);
}

TEST_F(WatchFaults, DirectoryWithoutWatchIsReportedAndOthersAreWatched) {
  tree_.write("a/file", "1");
  FaultPlan plan;
  plan.fail_nth(SystemCall::inotify_add_watch, 3, ENOSPC);  // The root comes twice, then `a`.
  {
    const FaultScope scope(plan);
    watch();
  }
  EXPECT_EQ(take(), (Log{"unwatched a/", "ready /"}));
  tree_.write("b/file", "1");
  EXPECT_TRUE(run_until([&] { return has("created b/file") || has("created* b/file"); }));
  // It is tried again after a move.
  std::filesystem::rename(tree_.at("a"), tree_.at("c"));
  EXPECT_TRUE(run_until([&] { return has("created* c/file"); }));
  expect_convergence();
}

TEST_F(WatchFaults, DirectoryThatCannotBeListedIsReported) {
  tree_.write("a/file", "1");
  FaultPlan plan;
  plan.fail_nth(SystemCall::open, 2, EMFILE);
  {
    const FaultScope scope(plan);
    watch();
  }
  EXPECT_EQ(take(), (Log{"unwatched a/", "ready /"}));
  run_to_mark();
}

TEST_F(WatchFaults, FailingReadEndsWatch) {
  watch();
  tree_.write("a", "1");
  FaultPlan plan;
  plan.fail_share(SystemCall::read, 1, EIO, 1);
  const FaultScope scope(plan);
  EXPECT_TRUE(run_until_end());
  EXPECT_EQ(*end_, system_error(EIO));
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(WatchFaults, InterruptedReadIsRepeated) {
  watch();
  tree_.write("a", "1");
  FaultPlan plan;
  plan.fail_nth(SystemCall::read, 1, EINTR, 3);
  const FaultScope scope(plan);
  EXPECT_TRUE(run_until([&] { return has("written a"); }));
}

// Wherever memory runs out, the watch works, or the error is reported.
TEST_F(WatchFaults, EachFailedAllocationIsReported) {
  tree_.write("d/file", "1");
  bool has_failed = true;
  for (std::uint64_t nth = 1; has_failed; ++nth) {
    ASSERT_LT(nth, 1'000u);
    const auto loop = std::exchange(loop_, make_loop());
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    take();
    end_.reset();
    Result<Watch> started = start(tree_.root(), {});
    if (started) {
      for (int turns = 0; turns < 1'000 && !has("ready /") && !end_; ++turns) {
        if (loop_->run(Run::once)) break;
      }
      EXPECT_TRUE(has("ready /") || end_ || plan.failures(SystemCall::allocate) > 0);
    } else {
      EXPECT_EQ(started.error(), system_error(ENOMEM));
    }
    has_failed = plan.failures(SystemCall::allocate) > 0;
  }
}

}  // namespace
}  // namespace spate::testing
