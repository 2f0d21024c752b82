// Memory runs out inside the real backends: creating a loop reports it, and readiness that could
// not be stored is reported later.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "base/fault.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "sys/descriptor.h"
#include "tests/support/backends.h"

namespace spate {
namespace {

// Pipes into which one may write.
class WritablePipes {
 public:
  explicit WritablePipes(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      int ends[2];
      EXPECT_EQ(::pipe(ends), 0);
      for (const int fd : ends) ends_.emplace_back(fd);
    }
  }
  std::size_t count() const { return ends_.size() / 2; }
  int fd(std::size_t index) const { return ends_[2 * index + 1].get(); }

 private:
  std::vector<sys::Descriptor> ends_;
};

class BackendMemory : public ::testing::TestWithParam<std::string_view> {
 protected:
  auto create() { return Loop::create({.backend = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(EveryBackend, BackendMemory, ::testing::ValuesIn(testing::backends_here()),
                         testing::backend_test_name);

TEST_P(BackendMemory, LoopCreationSucceedsOrReportsError) {
  bool failed = true;
  for (std::uint64_t nth = 1; failed; ++nth) {
    ASSERT_LT(nth, 100u);
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    const auto loop = create();
    failed = plan.failures(SystemCall::allocate) > 0;
    if (!loop) {
      EXPECT_EQ(loop.error(), std::errc::not_enough_memory);
    }
    EXPECT_TRUE(loop || failed);
  }
}

TEST_P(BackendMemory, ReadinessIsEventuallyReported) {
  constexpr int kPipes = 300;
  auto loop = *create();
  std::vector<int> fds;
  for (int i = 0; i < kPipes; ++i) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], "x", 1), 1);
    ::close(ends[1]);
    fds.push_back(ends[0]);
  }
  std::vector<std::unique_ptr<Io>> ios;
  int called = 0;
  for (const int fd : fds) {
    ios.push_back(std::make_unique<Io>(*loop, fd, Events::read, [&called](Io& io) {
      ++called;
      io.stop();
    }));
  }
  int refused = 0;
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 0.7, ENOMEM, 7);
    const FaultScope scope(plan);
    for (const auto& io : ios) {
      while (!io->start()) ++refused;
    }
    for (int turn = 0; called < kPipes; ++turn) {
      ASSERT_LT(turn, 1000);
      ASSERT_FALSE(loop->run(Run::no_wait));
    }
  }
  EXPECT_EQ(called, kPipes);
  EXPECT_GT(refused, 0);
  for (const int fd : fds) ::close(fd);
}

// The kernel, or the backend, begins with other descriptors each time.
TEST_P(BackendMemory, DescriptorsThatStayReadyAreReportedInTurn) {
  const WritablePipes pipes(20);
  const auto backend = std::move(open_backend(GetParam())->backend);
  for (std::size_t i = 0; i < pipes.count(); ++i) {
    ASSERT_EQ(backend->modify(pipes.fd(i), Events::none, Events::write, 1), 0);
  }
  ReadyList ready;
  ASSERT_TRUE(ready.reserve(4));
  const std::size_t room = ready.capacity();
  ASSERT_LT(room, pipes.count());
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  std::set<int> reported;
  for (std::size_t turn = 0; turn < 4 * pipes.count(); ++turn) {
    ready.clear();
    ASSERT_EQ(backend->wait(Nanos{0}, ready), 0);
    EXPECT_EQ(ready.size(), room);
    for (const Ready& entry : ready) reported.insert(entry.fd);
  }
  EXPECT_EQ(reported.size(), pipes.count());
}

}  // namespace
}  // namespace spate
