// The ring: where it may not be had, when it fails later, and what becomes of operations.
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
#include "core/loop_core.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/timer.h"
#include "tests/support/backends.h"
#include "tests/support/make_loop.h"
#include "tests/support/open_fds.h"
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

// Receives once, and tells the order of things by one letter.
class Receiving {
 public:
  Receiving(Loop& loop, std::string& log, char name)
      : operations_(*core_of(loop).operations()), log_(log), name_(name) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    operation_.context = this;
    operation_.callback = [](void* context, sys::Operation&, int result, std::uint32_t) {
      auto& self = *static_cast<Receiving*>(context);
      self.log_ += self.name_;
      self.results.push_back(result);
    };
  }
  ~Receiving() {
    for (const int end : ends_) ::close(end);
  }

  bool begin() {
    io_uring_sqe* const entry = operations_.begin(operation_);
    if (entry == nullptr) return false;
    sys::prepare_receive(*entry, ends_[0], buffer_, sizeof(buffer_));
    return true;
  }
  void cancel() { EXPECT_TRUE(operations_.cancel(operation_)); }
  void send() { EXPECT_EQ(::send(ends_[1], "ping", 4, 0), 4); }
  bool is_begun() const { return operation_.is_begun; }

  std::vector<int> results;

 private:
  sys::Operations& operations_;
  sys::Operation operation_;
  std::string& log_;
  char name_;
  int ends_[2];
  char buffer_[16];
};

class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_backend("io_uring")) GTEST_SKIP() << ask_for_ring()->backend_info().reason;
    loop_ = make_loop("io_uring");
    loop_->ref();
    a_.emplace(*loop_, log_, 'a');
    b_.emplace(*loop_, log_, 'b');
  }
  void TearDown() override { loop_.reset(); }

  void turn() { ASSERT_FALSE(loop_->run(spate::Run::no_wait)); }
  void sleep() { ASSERT_FALSE(loop_->run(spate::Run::once)); }

  std::string log_;
  std::optional<Receiving> a_, b_;  // Outlive the loop, which tells them that it ends.
  std::unique_ptr<Loop> loop_;
};

// ---- where there is none

TEST(NoRing, AnotherBackendIsTakenAndSaysWhy) {
  if (!testing::has_backend("io_uring")) GTEST_SKIP() << ask_for_ring()->backend_info().reason;
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

TEST(NoRing, IsNotTakenUnasked) {
  FaultPlan plan;
  const FaultScope scope(plan);
  EXPECT_TRUE(Loop::create());
  EXPECT_TRUE(Loop::create({.backend = "epoll"}));
  EXPECT_EQ(plan.calls(SystemCall::io_uring_setup), 0u);
}

// Has the kernel refuse one system call from now on.
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
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "no filter may be set here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(NoRing, ASandboxForbidsAnyOfTheCalls) {
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

TEST(NoRing, ThereIsRoomForTheOthersDescriptorsOnly) {
  if (!testing::has_backend("io_uring")) GTEST_SKIP() << ask_for_ring()->backend_info().reason;
  in_child([] {
    const auto open = testing::open_fds();
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t room = 0;  // The lowest numbers that are free are taken.
    for (int left = 2; left > 0; ++room) {
      if (std::ranges::find(open, static_cast<int>(room)) == open.end()) --left;
    }
    limit.rlim_cur = room;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const auto none = Loop::create({.backend = "io_uring"});
    if (none) return 1;  // The ring takes one, and there is none left for an eventfd.
    return none.error() == system_error(EMFILE) ? 0 : 2;
  });
}

// ---- operations

TEST_F(RingTest, AnOperationIsToldInTheTurnInWhichItIsDone) {
  ASSERT_TRUE(a_->begin());
  turn();
  EXPECT_TRUE(a_->results.empty());
  a_->send();
  turn();
  EXPECT_EQ(a_->results, std::vector<int>{4});
  EXPECT_FALSE(a_->is_begun());
}

TEST_F(RingTest, AnOperationEndsASleep) {
  ASSERT_TRUE(a_->begin());
  std::thread sender([&] {
    std::this_thread::sleep_for(10ms);
    a_->send();
  });
  while (a_->results.empty()) sleep();
  sender.join();
  EXPECT_EQ(a_->results, std::vector<int>{4});
}

TEST_F(RingTest, TheyAreToldBeforeAnythingIsCalled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  Io io(*loop_, ends[0], Events::read, [&](Io& self) {
    log_ += 'i';
    self.stop();
  });
  Timer timer(*loop_, [&] { log_ += 't'; });
  ASSERT_TRUE(io.start());
  ASSERT_TRUE(timer.start(0s));
  ASSERT_TRUE(a_->begin());
  ASSERT_TRUE(b_->begin());
  b_->send();
  a_->send();
  turn();
  EXPECT_EQ(log_.substr(0, 2).find_first_of("it"), std::string::npos) << log_;
  EXPECT_EQ(log_.size(), 4u) << log_;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RingTest, ManyAreToldInOneTurn) {
  std::vector<std::unique_ptr<Receiving>> many;
  for (int i = 0; i < 100; ++i) {  // The kernel completes twenty a call.
    many.push_back(std::make_unique<Receiving>(*loop_, log_, 'm'));
    ASSERT_TRUE(many.back()->begin());
  }
  turn();
  for (const auto& one : many) one->send();
  turn();
  EXPECT_EQ(log_, std::string(100, 'm'));
}

TEST_F(RingTest, CancelledItIsToldSo) {
  ASSERT_TRUE(a_->begin());
  turn();
  a_->cancel();
  turn();
  EXPECT_EQ(a_->results, std::vector<int>{-ECANCELED});
}

TEST_F(RingTest, TheEndOfTheLoopIsTold) {
  ASSERT_TRUE(a_->begin());
  turn();
  ASSERT_TRUE(b_->begin());
  loop_.reset();
  EXPECT_EQ(a_->results, std::vector<int>{-ECANCELED});
  EXPECT_EQ(b_->results, std::vector<int>{-ECANCELED});
}

TEST_F(RingTest, AnotherThreadThatRunsTheLoopFindsThemCancelled) {
  ASSERT_TRUE(a_->begin());
  turn();
  std::thread([&] {
    sleep();
    ASSERT_EQ(a_->results, std::vector<int>{-ECANCELED});
    ASSERT_TRUE(a_->begin());
    a_->send();
    turn();
  }).join();
  EXPECT_EQ(a_->results, (std::vector<int>{-ECANCELED, 4}));
}

TEST_F(RingTest, TheChildOfAForkFindsThemCancelled) {
  ASSERT_TRUE(a_->begin());
  turn();
  in_child([&] {
    if (loop_->run(spate::Run::no_wait) != Error::loop_forked || loop_->after_fork()) return 1;
    sleep();  // Does not, as there is something to be told.
    if (a_->results != std::vector<int>{-ECANCELED} || !b_->begin()) return 2;
    b_->send();
    turn();
    return b_->results == std::vector<int>{4} ? 0 : 3;
  });
  a_->send();
  turn();
  EXPECT_EQ(a_->results, std::vector<int>{4});
}

TEST_F(RingTest, AnOuterLoopSeesThem) {
  ASSERT_TRUE(a_->begin());
  const Result<int> fd = loop_->poll_fd();
  ASSERT_TRUE(fd);
  EXPECT_EQ(loop_->prepare_to_wait(), kForever);
  pollfd outer{.fd = *fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&outer, 1, 0), 0);
  a_->send();
  EXPECT_EQ(::poll(&outer, 1, 1000), 1);
  turn();
  EXPECT_EQ(a_->results, std::vector<int>{4});
  loop_->prepare_to_wait();
  EXPECT_EQ(::poll(&outer, 1, 0), 0);
}

// ---- when it fails later

TEST_F(RingTest, ShortageDelaysAndLosesNothing) {
  for (const int error : {EAGAIN, EBUSY, ENOMEM, EINTR}) {
    FaultPlan plan;
    plan.fail_share(SystemCall::io_uring_enter, 0.5, error, 1);
    const FaultScope scope(plan);
    loop_->unref();
    Traffic traffic(*loop_);
    ASSERT_TRUE(traffic.start());
    ASSERT_TRUE(a_->begin());
    a_->send();
    traffic.run();
    loop_->ref();
    EXPECT_TRUE(traffic.is_through());
    EXPECT_GT(plan.failures(SystemCall::io_uring_enter), 0u);
  }
  EXPECT_EQ(a_->results, (std::vector<int>{4, 4, 4, 4}));
}

TEST_F(RingTest, AShortageThatIsOverIsNotSleptThrough) {
  turn();
  while (testing::await_interruption()) {  // Of the tests before.
  }
  FaultPlan plan;
  plan.fail_nth(SystemCall::io_uring_enter, 1, EAGAIN);
  const FaultScope scope(plan);
  bool is_late = false;
  Timer guard(*loop_, [&] { is_late = true; });
  ASSERT_TRUE(guard.start(60s));
  ASSERT_TRUE(a_->begin());
  a_->send();
  while (a_->results.empty() && !is_late) sleep();
  EXPECT_FALSE(is_late);
}

TEST_F(RingTest, AfterAnInterruptionTimersDoNotOvertakeWhatIsReady) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Io io(*loop_, ends[0], Events::read, [&](Io& self) {
    log_ += 'i';
    self.stop();
  });
  Timer timer(*loop_, [&] { log_ += 't'; });
  ASSERT_TRUE(io.start());
  turn();
  ASSERT_TRUE(timer.start(50ms));
  FaultPlan plan;
  plan.fail_nth(SystemCall::io_uring_enter, 1, EINTR)
      .before_nth(SystemCall::io_uring_enter, 1, [&] {
        ASSERT_EQ(::write(ends[1], "x", 1), 1);
        std::this_thread::sleep_for(60ms);
      });
  const FaultScope scope(plan);
  while (log_.size() < 2) sleep();
  EXPECT_EQ(log_, "it");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RingTest, AShortageThatLastsDoesNotSpin) {
  Timer timer(*loop_, [&] { loop_->stop(); });
  ASSERT_TRUE(timer.start(50ms));
  FaultPlan plan;
  plan.fail_share(SystemCall::io_uring_enter, 1, EAGAIN, 1);
  const FaultScope scope(plan);
  const std::uint64_t turns = loop_->iteration();
  EXPECT_FALSE(loop_->run());
  EXPECT_LE(loop_->iteration() - turns, 60u);
}

TEST_F(RingTest, ForbiddenLaterItIsDoneWithout) {
  for (const int error : {EPERM, ENOSYS}) {
    loop_ = make_loop("io_uring");
    loop_->ref();
    a_.emplace(*loop_, log_, 'a');
    ASSERT_TRUE(a_->begin());
    turn();
    FaultPlan plan;
    plan.fail_share(SystemCall::io_uring_enter, 1, error, 1);
    const FaultScope scope(plan);
    loop_->unref();
    Traffic traffic(*loop_);
    ASSERT_TRUE(traffic.start());
    traffic.run();
    loop_->ref();
    EXPECT_TRUE(traffic.is_through());
    EXPECT_EQ(a_->results, std::vector<int>{-error});
    EXPECT_FALSE(a_->begin());
    EXPECT_LE(plan.calls(SystemCall::io_uring_enter), 200u) << "it is not asked for ever";
  }
}

TEST_F(RingTest, ACompletionThatTheKernelLostEndsTheOthers) {
  ASSERT_TRUE(a_->begin());
  turn();
  FaultPlan plan;
  plan.fail_nth(SystemCall::io_uring_enter, 1, EBADR);
  {
    const FaultScope scope(plan);
    ASSERT_TRUE(b_->begin());
    turn();
  }
  EXPECT_EQ(a_->results.size(), 1u);
  EXPECT_EQ(b_->results.size(), 1u);
  ASSERT_TRUE(a_->begin());
  a_->send();
  turn();
  EXPECT_EQ(a_->results.back(), 4);
}

}  // namespace
}  // namespace spate
