// Known classes of bugs with descriptors. Each test names where the bug was found.
#include <algorithm>
#include <vector>

#include "spate/error.h"
#include "tests/conformance/harness.h"
#include "tests/support/missing.h"

namespace spate::testing {
namespace {

using DescriptorsTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(DescriptorsTest);

// Opens descriptors until the next one would have at least this number.
std::vector<Fd> occupy_below(int number) {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto wanted = static_cast<rlim_t>(number) + 256;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(limit.rlim_max, wanted);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  std::vector<Fd> taken;
  do {
    taken.push_back(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  } while (taken.back().get() >= 0 && taken.back().get() < number - 1);
  return taken;
}

// libev, "disappearing file descriptors": closed behind the loop's back, at any moment.
TEST_P(DescriptorsTest, OtherWatchersContinueWhenDescriptorDisappears) {
  std::vector<Pipe> pipes(8);
  std::vector<std::unique_ptr<Probe<Io>>> ios;
  for (const Pipe& pipe : pipes) {
    ios.push_back(std::make_unique<Probe<Io>>(*loop_, pipe.in(), Events::read));
    EXPECT_TRUE(ios.back()->watcher.start());
    pipe.fill();
  }
  for (std::size_t gone = 0; gone < pipes.size(); gone += 2) {
    ios[gone]->then = [&pipes, gone] {
      pipes[gone].read_end.reset();
      pipes[gone].write_end.reset();
    };
  }
  turn(5);
  for (std::size_t i = 1; i < ios.size(); i += 2) EXPECT_GE(ios[i]->calls, 4) << i;
  for (std::size_t i = 0; i < ios.size(); i += 2) EXPECT_LE(ios[i]->calls, 2) << i;
}

// golang/go#59545, h2o#1427: another file takes the number that a callback frees, while an event of
// the old one is still in the batch.
TEST_P(DescriptorsTest, QueuedEventDoesNotReachNewOwnerOfDescriptor) {
  Pipe first;
  Pipe second;
  Pipe quiet;
  Probe<Io> killer{*loop_, first.in(), Events::read};
  auto victim = std::make_unique<Probe<Io>>(*loop_, second.in(), Events::read);
  std::unique_ptr<Probe<Io>> heir;
  killer->set_priority(1);
  killer.then = [&] {
    if (heir != nullptr) return;
    const int number = second.in();
    victim.reset();
    ASSERT_EQ(::dup2(quiet.in(), number), number);
    heir = std::make_unique<Probe<Io>>(*loop_, number, Events::read);
    EXPECT_TRUE(heir->watcher.start());
  };
  EXPECT_TRUE(killer->start());
  EXPECT_TRUE(victim->watcher.start());
  first.fill();
  second.fill();
  turn(3);
  ASSERT_NE(heir, nullptr);
  EXPECT_EQ(heir->calls, 0);
  quiet.fill();
  turn();
  EXPECT_EQ(heir->calls, 1);
}

// libuv a7c44d674, libuv#5039: the callback stops its watcher, and the loop continues with the
// other half of the same event.
TEST_P(DescriptorsTest, ReadAndWriteAndHangUpInOneEventAreOneCall) {
  Sockets pair;
  auto io = std::make_unique<Probe<Io>>(*loop_, pair.near(),
                                        Events::read | Events::write | Events::peer_closed);
  int calls = 0;
  io->then = [&] {
    ++calls;
    pair.near_end.reset();
    io.reset();
  };
  EXPECT_TRUE(io->watcher.start());
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  pair.far_end.reset();
  turn(2);
  EXPECT_EQ(calls, 1);
}

// libev 4.33's fd_set overrun, ev.pod on select: beyond FD_SETSIZE it must refuse, and must not
// corrupt memory.
TEST_P(DescriptorsTest, LoopBeyondFdSetsizeFailsOrWorks) {
  const std::vector<Fd> taken = occupy_below(FD_SETSIZE + 8);
  if (taken.back().get() < FD_SETSIZE) GTEST_SKIP() << too_few_descriptors(FD_SETSIZE + 10);
  const Result<std::unique_ptr<Loop>> created = Loop::create({.backend = backend()});
  if (is_select()) {
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error(), Error::fd_out_of_range);
    return;
  }
  ASSERT_TRUE(created);
  Pipe pipe;
  Probe<Io> io{**created, pipe.out(), Events::write};
  EXPECT_TRUE(io->start());
  testing::turn(**created);
  EXPECT_EQ(io.calls, 1);
}

TEST_P(DescriptorsTest, ChildExitIsReportedDespiteHighDescriptors) {
  const std::vector<Fd> taken = occupy_below(FD_SETSIZE + 8);
  if (taken.back().get() < FD_SETSIZE) GTEST_SKIP() << too_few_descriptors(FD_SETSIZE + 10);
  Probe<Child> child{*loop_};
  const int pid = fork_child([] { return 3; });
  EXPECT_FALSE(child->start(pid));
  EXPECT_TRUE(run_until(*loop_, [&] { return child.calls == 1; }, 1s));
  if (child.calls == 0) wait_for(pid);
}

TEST_P(DescriptorsTest, StatChangeIsReportedDespiteHighDescriptors) {
  const std::vector<Fd> taken = occupy_below(FD_SETSIZE + 8);
  if (taken.back().get() < FD_SETSIZE) GTEST_SKIP() << too_few_descriptors(FD_SETSIZE + 10);
  const TempDir dir;
  Probe<Stat> stat{*loop_};
  EXPECT_FALSE(stat->start(dir.file("file"), {.interval = Stat::kMinInterval}));
  turn();
  dir.append("file");
  EXPECT_TRUE(run_until(*loop_, [&] { return stat.calls == 1; }, 1s));
}

// libevent bd817009, cf8acae3: tables that grow with the number's value.
TEST_P(DescriptorsTest, ManyDescriptorsAreWatchedAndClosed) {
  constexpr std::size_t kMany = 900;
  std::vector<std::unique_ptr<Probe<Io>>> ios;
  {
    std::vector<Pipe> pipes(kMany / 2);
    for (const Pipe& pipe : pipes) {
      ios.push_back(std::make_unique<Probe<Io>>(*loop_, pipe.in(), Events::read));
      ios.push_back(std::make_unique<Probe<Io>>(*loop_, pipe.out(), Events::write));
    }
    for (const auto& io : ios) {
      if (!is_select() || io->watcher.fd() < FD_SETSIZE) EXPECT_FALSE(io->watcher.start_now());
    }
    turn(3);
    EXPECT_GT(ios[1]->calls, 0);
    for (const auto& io : ios) io->watcher.stop_before_close();
  }
  EXPECT_EQ(loop_->active_count(), 0);
  turn(2);
  EXPECT_EQ(loop_->metrics().active_fds, 0u);
  EXPECT_EQ(loop_->metrics().stale_events, 0u);
}

}  // namespace
}  // namespace spate::testing
