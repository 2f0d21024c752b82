// The ring: where it is not available, and when it fails later.
#include "sys/ring.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "base/fault.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/timer.h"
#include "system/open_fds.h"
#include "tests/support/backends.h"
#include "tests/support/make_loop.h"
#include "tests/support/missing.h"
#include "tests/support/system_error.h"
#include "tests/support/traffic.h"

namespace spate {
namespace {

using namespace std::chrono_literals;
using testing::make_loop;
using testing::system_error;
using testing::Traffic;

std::unique_ptr<Loop> ask_for_ring() {
  auto loop = Loop::create({.backend = "io_uring"});
  EXPECT_TRUE(loop);
  return std::move(*loop);
}

std::string why_no_ring() { return testing::no_ring(ask_for_ring()->backend_info().reason); }

// A loop that sleeps in its ring, and a pipe that it watches.
class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_backend("io_uring")) GTEST_SKIP() << why_no_ring();
    loop_ = make_loop("io_uring");
    ASSERT_EQ(::pipe(ends_), 0);
    reader_.emplace(*loop_, ends_[0], Events::read, [this] {
      char byte;
      ASSERT_EQ(::read(ends_[0], &byte, 1), 1);
      log_ += byte;
    });
    ASSERT_TRUE(reader_->start());
  }
  void TearDown() override {
    reader_.reset();
    for (const int end : ends_) ::close(end);
  }

  void send(char byte) { ASSERT_EQ(::write(ends_[1], &byte, 1), 1); }
  void turn() { ASSERT_FALSE(loop_->run(spate::Run::no_wait)); }
  // Runs until the pipe was read once more; fails after a time by which the event must be lost.
  void sleep() {
    bool is_late = false;
    Timer guard(*loop_, [&] { is_late = true; });
    ASSERT_TRUE(guard.start(60s));
    const std::size_t before = log_.size();
    while (log_.size() == before && !is_late) ASSERT_FALSE(loop_->run(spate::Run::once));
    EXPECT_FALSE(is_late);
  }

  std::unique_ptr<Loop> loop_;
  int ends_[2] = {-1, -1};
  std::optional<Io> reader_;
  std::string log_;
};

// ---- without io_uring

TEST(IoUringUnavailable, FallsBackToEpollAndReportsReason) {
  if (!testing::has_backend("io_uring")) GTEST_SKIP() << why_no_ring();
  const auto before = testing::open_fds();
  for (const SystemCall call :
       {SystemCall::io_uring_setup, SystemCall::io_uring_enter, SystemCall::map}) {
    for (const int error : {ENOSYS, EPERM, EACCES, EINVAL, ENOMEM, EMFILE}) {
      FaultPlan plan;
      plan.fail_nth(call, 1, error);
      const FaultScope scope(plan);
      const auto loop = ask_for_ring();
      EXPECT_EQ(loop->backend_info().name, "epoll");
      EXPECT_EQ(loop->backend_info().reason, std::string("io_uring: ") + std::strerror(error));
    }
    EXPECT_EQ(testing::open_fds(), before);
  }
}

TEST(IoUringUnavailable, IsNotSelectedByDefault) {
  FaultPlan plan;
  const FaultScope scope(plan);
  EXPECT_TRUE(Loop::create());
  EXPECT_TRUE(Loop::create({.backend = "epoll"}));
  EXPECT_EQ(plan.calls(SystemCall::io_uring_setup), 0u);
}

// Makes the kernel refuse one system call from now on.
bool forbid(unsigned number, unsigned error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kNoFilter = 77;

template <class Body>
void in_child(Body body) {
  const int child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter)
    GTEST_SKIP() << "seccomp is missing: it needs CONFIG_SECCOMP_FILTER in the kernel";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(IoUringUnavailable, FallsBackToEpollInSandbox) {
  for (const unsigned call : {SYS_io_uring_setup, SYS_io_uring_enter}) {
    for (const int error : {EPERM, ENOSYS}) {
      in_child([&] {
        if (!forbid(call, static_cast<unsigned>(error))) return kNoFilter;
        const auto loop = ask_for_ring();
        if (loop->backend_info().name != "epoll") return 1;
        return loop->backend_info().reason.find("io_uring: ") == 0 ? 0 : 2;
      });
    }
  }
}

TEST(IoUringUnavailable, FallsBackToEpollWithoutFreeDescriptor) {
  if (!testing::has_backend("io_uring")) GTEST_SKIP() << why_no_ring();
  in_child([] {
    const auto open = testing::open_fds();
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t room = 0;  // The lowest free numbers are used first.
    for (int left = 2; left > 0; ++room) {
      if (std::ranges::find(open, static_cast<int>(room)) == open.end()) --left;
    }
    limit.rlim_cur = room;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const auto none = Loop::create({.backend = "io_uring"});
    if (none) return 1;  // The ring takes one descriptor, and none is left for the eventfd.
    return none.error() == system_error(EMFILE) ? 0 : 2;
  });
}

// ---- where there is one

TEST_F(RingTest, LoopSleepsInRing) {
  FaultPlan plan;
  const FaultScope scope(plan);
  send('a');
  sleep();
  std::thread sender([&] {
    std::this_thread::sleep_for(10ms);
    send('b');
  });
  sleep();
  sender.join();
  EXPECT_EQ(log_, "ab");
  EXPECT_GE(plan.calls(SystemCall::io_uring_enter), 2u);
}

TEST_F(RingTest, TurnWithoutSleepDoesNotEnterRing) {
  FaultPlan plan;
  const FaultScope scope(plan);
  send('a');
  turn();
  EXPECT_EQ(log_, "a");
  EXPECT_EQ(plan.calls(SystemCall::io_uring_enter), 0u);
}

TEST_F(RingTest, AnotherThreadThatRunsLoopUsesItsOwnRing) {
  send('a');
  sleep();
  FaultPlan plan;
  const FaultScope scope(plan);
  std::thread([&] {
    for (const char byte : {'b', 'c', 'd'}) {
      send(byte);
      sleep();
    }
  }).join();
  EXPECT_EQ(log_, "abcd");
  EXPECT_EQ(plan.calls(SystemCall::io_uring_setup), 1u);
}

TEST_F(RingTest, ForkedChildUsesItsOwnRing) {
  send('a');
  sleep();
  in_child([&] {
    if (loop_->run(spate::Run::no_wait) != Error::loop_forked || loop_->after_fork()) return 1;
    FaultPlan plan;
    const FaultScope scope(plan);
    send('b');
    sleep();
    return log_ == "ab" && plan.calls(SystemCall::io_uring_enter) > 0 ? 0 : 2;
  });
  send('c');
  sleep();
  EXPECT_EQ(log_, "ac");
}

// ---- when it fails later

TEST_F(RingTest, ShortageDelaysButLosesNothing) {
  reader_->stop();
  for (const int error : {EAGAIN, EBUSY, ENOMEM, EINTR}) {
    FaultPlan plan;
    plan.fail_share(SystemCall::io_uring_enter, 0.5, error, 1);
    const FaultScope scope(plan);
    Traffic traffic(*loop_);
    ASSERT_TRUE(traffic.start());
    traffic.run();
    EXPECT_TRUE(traffic.is_through());
    EXPECT_GT(plan.failures(SystemCall::io_uring_enter), 0u);
  }
}

TEST_F(RingTest, TimersDoNotPrecedeReadyEventsAfterInterruption) {
  Timer timer(*loop_, [&] { log_ += 't'; });
  turn();
  ASSERT_TRUE(timer.start(50ms));
  FaultPlan plan;
  plan.fail_nth(SystemCall::io_uring_enter, 1, EINTR)
      .before_nth(SystemCall::io_uring_enter, 1, [&] {
        send('i');
        std::this_thread::sleep_for(60ms);
      });
  const FaultScope scope(plan);
  while (log_.size() < 2) ASSERT_FALSE(loop_->run(spate::Run::once));
  EXPECT_EQ(log_, "it");
}

TEST_F(RingTest, LastingShortageDoesNotSpinLoop) {
  Timer timer(*loop_, [&] { loop_->stop(); });
  ASSERT_TRUE(timer.start(50ms));
  FaultPlan plan;
  plan.fail_share(SystemCall::io_uring_enter, 1, EAGAIN, 1);
  const FaultScope scope(plan);
  const std::uint64_t turns = loop_->iteration();
  EXPECT_FALSE(loop_->run());
  EXPECT_LE(loop_->iteration() - turns, 60u);
}

TEST_F(RingTest, LoopContinuesWithoutRingForbiddenLater) {
  reader_->stop();
  for (const int error : {EPERM, ENOSYS}) {
    const auto loop = make_loop("io_uring");
    FaultPlan plan;
    plan.fail_share(SystemCall::io_uring_enter, 1, error, 1);
    const FaultScope scope(plan);
    Traffic traffic(*loop);
    ASSERT_TRUE(traffic.start());
    traffic.run();
    EXPECT_TRUE(traffic.is_through());
    EXPECT_LE(plan.calls(SystemCall::io_uring_enter), 200u) << "it is not asked for ever";
  }
}

TEST_F(RingTest, LostCompletionIsReplaced) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::io_uring_enter, 1, EBADR);
  const FaultScope scope(plan);
  for (const char byte : {'a', 'b', 'c'}) {
    send(byte);
    sleep();
  }
  EXPECT_EQ(log_, "abc");
  EXPECT_EQ(plan.calls(SystemCall::io_uring_setup), 1u);
  EXPECT_GT(plan.calls(SystemCall::io_uring_enter), 2u);
}

}  // namespace
}  // namespace spate
