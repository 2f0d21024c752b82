// Memory runs out at the first allocation, the second, the third ... until a scenario runs without
// a failure. start() returns false, or an event comes later; nothing is lost and nothing leaks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "base/fault.h"
#include "spate/async.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "spate/timer.h"
#include "tests/support/scripted.h"

namespace spate {
namespace {

using testing::ScriptedLoop;

// Makes the nth allocation of the scenario fail, and up to four more after it, for all n.
void for_each_failure(const std::function<void(ScriptedLoop&)>& scenario) {
  for (const std::uint64_t times : {1u, 2u, 5u}) {
    bool failed = true;
    for (std::uint64_t nth = 1; failed; ++nth) {
      ASSERT_LT(nth, 200u) << "does it ever get by?";
      SCOPED_TRACE(::testing::Message() << "allocation " << nth << ", " << times << " times");
      ScriptedLoop scripted;
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM, times);
      const FaultScope scope(plan);
      scenario(scripted);
      failed = plan.failures(SystemCall::allocate) > 0;
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Tries again until it succeeds.
template <class F>
void insist(F start) {
  int tries = 0;
  while (!start()) ASSERT_LT(++tries, 10);
}

void turn_until(ScriptedLoop& scripted, const bool& done) {
  for (int turn = 0; turn < 12 && !done; ++turn) {
    ASSERT_FALSE(scripted.loop->run(Run::no_wait));
    scripted.clock.advance(Nanos{1000});
  }
}

// One test for each kind of event: whatever fails meanwhile, its callback comes.
class MemoryRunsOut : public ::testing::Test {
 protected:
  template <class Scenario>
  void expect_delivery(Scenario scenario) {
    for_each_failure([this, &scenario](ScriptedLoop& scripted) {
      delivered_ = false;
      scenario(scripted);
      turn_until(scripted, delivered_);
      EXPECT_TRUE(delivered_) << "an event got lost";
    });
  }
  auto deliver() {
    return [this] { delivered_ = true; };
  }

  bool delivered_ = false;
};

TEST_F(MemoryRunsOut, IoIsStillServed) {
  for_each_failure([this](ScriptedLoop& scripted) {
    delivered_ = false;
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    Io io(*scripted.loop, fd, Events::read, deliver());
    insist([&io] { return io.start(); });
    EXPECT_TRUE(io.is_active());
    EXPECT_EQ(scripted.loop->active_count(), 1);
    for (int turn = 0; turn < 10 && !delivered_; ++turn) {
      ASSERT_FALSE(scripted.loop->run(Run::no_wait));
      scripted.backend->report(fd, Events::read);  // Level-triggered, as every backend is.
    }
    EXPECT_TRUE(delivered_);
    io.stop();
    ::close(fd);
  });
}

TEST_F(MemoryRunsOut, RefusedIoIsStillReported) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  expect_delivery([this, fd](ScriptedLoop& scripted) {
    scripted.backend->refusals[fd] = -EBADF;
    auto io = std::make_unique<Io>(*scripted.loop, fd, Events::read, deliver());
    insist([&io] { return io->start(); });
    turn_until(scripted, delivered_);
  });
  ::close(fd);
}

TEST_F(MemoryRunsOut, TimerStillExpires) {
  for (const Nanos repeat : {Nanos{0}, Nanos{1000}}) {
    expect_delivery([this, repeat](ScriptedLoop& scripted) {
      Timer timer(*scripted.loop, deliver());
      insist([&] { return timer.start(Nanos{5'000'000}, repeat); });
      EXPECT_EQ(scripted.loop->active_count(), 1);
      scripted.clock.advance(std::chrono::milliseconds{6});
      turn_until(scripted, delivered_);
    });
  }
}

TEST_F(MemoryRunsOut, NoneOfManyTimersIsLost) {
  for_each_failure([](ScriptedLoop& scripted) {
    int called = 0;
    std::vector<std::unique_ptr<Timer>> timers;
    for (int i = 0; i < 100; ++i) {
      timers.push_back(std::make_unique<Timer>(*scripted.loop, [&called] { ++called; }));
      insist([&] { return timers.back()->start(Nanos{i * 700'000}); });
    }
    EXPECT_EQ(scripted.loop->active_count(), 100);
    for (int turn = 0; turn < 1000 && scripted.loop->active_count() > 0; ++turn) {
      ASSERT_FALSE(scripted.loop->run(Run::once));
    }
    EXPECT_EQ(called, 100);
  });
}

TEST_F(MemoryRunsOut, TaskIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    insist([&] { return scripted.loop->post(deliver()); });
    turn_until(scripted, delivered_);
    EXPECT_EQ(scripted.loop->metrics().posts, 1u);
  });
}

TEST_F(MemoryRunsOut, AsyncIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    Async async(*scripted.loop, deliver());
    insist([&] { return async.start(); });
    async.send();
    turn_until(scripted, delivered_);
    async.stop();
  });
}

TEST_F(MemoryRunsOut, SignalIsStillReported) {
  expect_delivery([this](ScriptedLoop& scripted) {
    Signal signal(*scripted.loop, deliver());
    insist([&] { return !signal.start(SIGUSR1); });
    ::raise(SIGUSR1);
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, PeriodicIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    Periodic periodic(*scripted.loop, deliver());
    insist([&] { return periodic.start_at(scripted.clock.wall() + std::chrono::milliseconds{2}); });
    scripted.clock.advance(std::chrono::milliseconds{3});
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, ChildExitIsStillReported) {
  expect_delivery([this](ScriptedLoop& scripted) {
    const int pid = ::fork();
    if (pid == 0) ::_exit(3);
    siginfo_t info;
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    Child child(*scripted.loop, deliver());
    insist([&] { return !child.start(pid, Child::Report::exit_stop_continue); });
    turn_until(scripted, delivered_);
    if (child.is_active()) ::waitpid(pid, nullptr, 0);
  });
}

TEST_F(MemoryRunsOut, ChangedPathIsStillReported) {
  const std::string path = ::testing::TempDir() + "spate_memory_" + std::to_string(::getpid());
  expect_delivery([this, &path](ScriptedLoop& scripted) {
    ::unlink(path.c_str());
    Stat stat(*scripted.loop, deliver());
    insist([&] { return !stat.start(path); });
    ::close(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (int turn = 0; turn < 10 && !delivered_; ++turn) {
      for (const auto& [fd, registration] : scripted.backend->registered) {
        scripted.backend->report(fd, Events::read);  // One of these descriptors is inotify's.
      }
      scripted.clock.advance(std::chrono::seconds{6});
      ASSERT_FALSE(scripted.loop->run(Run::no_wait));
    }
  });
  ::unlink(path.c_str());
}

TEST_F(MemoryRunsOut, OnceIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    insist([&] {
      return !scripted.loop->once(1, Events::read, Nanos{1000}, [this](Events events) {
        EXPECT_EQ(events, Events::timer);
        delivered_ = true;
      });
    });
    EXPECT_EQ(scripted.loop->active_count(), 2);
    scripted.clock.advance(std::chrono::milliseconds{1});
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, AfterIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    insist([&] { return !scripted.loop->after(Nanos{1000}, deliver()); });
    EXPECT_EQ(scripted.loop->active_count(), 1);
    scripted.clock.advance(std::chrono::milliseconds{1});
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, DeferredTaskIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    insist([&] { return scripted.loop->defer(deliver()); });
    EXPECT_EQ(scripted.loop->pending_count(), 1u);
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, OnSignalIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    insist([&] { return !scripted.loop->on_signal(SIGUSR1, deliver()); });
    ::raise(SIGUSR1);
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, HooksAreCalledInLaterTurn) {
  expect_delivery([this](ScriptedLoop& scripted) {
    Check check(*scripted.loop, deliver());
    insist([&] { return check.start(); });
    turn_until(scripted, delivered_);
  });
  expect_delivery([this](ScriptedLoop& scripted) {
    Idle idle(*scripted.loop, deliver());
    insist([&] { return idle.start(); });
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, ForkHookIsStillCalled) {
  expect_delivery([this](ScriptedLoop& scripted) {
    Fork fork(*scripted.loop, deliver());
    insist([&] { return fork.start(); });
    insist([&] { return !scripted.loop->after_fork(); });
    turn_until(scripted, delivered_);
  });
}

TEST_F(MemoryRunsOut, FeedReportsFailure) {
  for_each_failure([](ScriptedLoop& scripted) {
    int called = 0;
    Timer timer(*scripted.loop, [&called] { ++called; });
    const bool fed = timer.feed();
    EXPECT_EQ(timer.is_pending(), fed);
    ASSERT_FALSE(scripted.loop->run(Run::no_wait));
    EXPECT_EQ(called, fed ? 1 : 0);
  });
}

// An event that cannot be queued now is queued in a later turn; this turn must still end.
TEST(MemoryShortage, DoesNotPreventTurnFromEnding) {
  ScriptedLoop scripted;
  int called = 0;
  Timer once(*scripted.loop, [&called] { ++called; });
  Timer repeating(*scripted.loop, [&called] { ++called; });
  ASSERT_TRUE(once.start(Nanos{0}));
  ASSERT_TRUE(repeating.start(Nanos{0}, Nanos{10}));
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    for (int turn = 0; turn < 3; ++turn) {
      scripted.clock.advance(Nanos{10});
      ASSERT_FALSE(scripted.loop->run(Run::no_wait));
    }
    EXPECT_EQ(called, 0);
  }
  scripted.clock.advance(Nanos{10});
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(called, 2);
}

TEST(Reserve, AllowsStartingIosAndTimersWithoutMemory) {
  ScriptedLoop scripted;
  constexpr int kCount = 200;
  ASSERT_TRUE(scripted.loop->reserve(kCount + 100, kCount));
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<int> fds;
  for (int i = 0; i < kCount; ++i) fds.push_back(::dup(null));
  ASSERT_LT(fds.back(), kCount + 100);
  std::vector<std::unique_ptr<Io>> ios;
  std::vector<std::unique_ptr<Timer>> timers;
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    for (int i = 0; i < kCount; ++i) {
      ios.push_back(std::make_unique<Io>(*scripted.loop, fds[static_cast<std::size_t>(i)],
                                         Events::read, [] {}));
      EXPECT_TRUE(ios.back()->start());
      timers.push_back(std::make_unique<Timer>(*scripted.loop, [] {}));
      EXPECT_TRUE(timers.back()->start(std::chrono::milliseconds{i * i}));
    }
    EXPECT_EQ(scripted.loop->active_count(), 2 * kCount);
  }
  ios.clear();
  timers.clear();
  for (const int fd : fds) ::close(fd);
  ::close(null);
}

}  // namespace
}  // namespace spate
