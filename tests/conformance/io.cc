// Io: readiness of descriptors, as every backend must report it.
#include <sys/socket.h>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

using IoTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(IoTest);
// The others make no system call for a change.
using KernelSetIoTest = OnEveryBackend;
SPATE_ON_BACKENDS_WHERE(KernelSetIoTest, uses_kernel_set);
// select() cannot wait for EOF alone: with unread data before it, it spins.
using SleepingIoTest = OnEveryBackend;
SPATE_ON_BACKENDS_WHERE(SleepingIoTest, [](std::string_view name) { return !uses_select(name); });

TEST_P(IoTest, ReportsReadableAndWritable) {
  Pipe pipe;
  Probe<Io> reader{*loop_, pipe.in(), Events::read};
  Probe<Io> writer{*loop_, pipe.out(), Events::write};
  EXPECT_TRUE(reader->start());
  EXPECT_TRUE(writer->start());
  turn();
  EXPECT_EQ(reader.calls, 0);
  EXPECT_EQ(writer.calls, 1);
  EXPECT_EQ(writer.events, Events::write);
  pipe.fill();
  turn();
  EXPECT_EQ(reader.calls, 1);
  EXPECT_EQ(reader.events, Events::read);
}

TEST_P(IoTest, ReadAndWriteAreReportedInOneCall) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), kReadWrite};
  EXPECT_TRUE(io->start());
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events, kReadWrite);
}

TEST_P(IoTest, OnlyRequestedEventsAreReported) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::read};
  EXPECT_TRUE(io->start());
  turn(3);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoTest, IsLevelTriggered) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  pipe.fill();
  turn(5);
  EXPECT_EQ(io.calls, 5);
  pipe.drain();
  turn(5);
  EXPECT_EQ(io.calls, 5);
}

TEST_P(IoTest, WakesSleepingLoop) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  io.then = [&] { io->stop(); };
  EXPECT_TRUE(io->start());
  const int pid = fork_child([&, parent = ::getpid()] {
    await_sleep(parent);
    return static_cast<int>(::write(pipe.out(), "x", 1) != 1);
  });
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(wait_for(pid), 0);
}

TEST_P(IoTest, LastStartedWatcherOfDescriptorIsCalledFirst) {
  Sockets pair;
  Probe<Io> a{*loop_, pair.near(), Events::write};
  Probe<Io> b{*loop_, pair.near(), kReadWrite};
  Probe<Io> c{*loop_, pair.near(), Events::read};
  Probe<Io> d{*loop_, pair.near(), Events::write};
  for (Probe<Io>* io : {&b, &d, &a, &c}) EXPECT_TRUE((*io)->start());
  a.note(log_, 'a'), b.note(log_, 'b'), c.note(log_, 'c'), d.note(log_, 'd');
  turn();
  EXPECT_EQ(log_, "adb");
  EXPECT_EQ(b.events, Events::write);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  log_.clear();
  turn();
  EXPECT_EQ(log_, "cadb");
  EXPECT_EQ(b.events, kReadWrite);
  EXPECT_EQ(a.events, Events::write);
  EXPECT_EQ(c.events, Events::read);
}

TEST_P(IoTest, WatcherOfSharedDescriptorCanStopAndRestart) {
  Sockets pair;
  Probe<Io> a{*loop_, pair.near(), Events::write};
  Probe<Io> b{*loop_, pair.near(), Events::write};
  Probe<Io> c{*loop_, pair.near(), Events::write};
  a.note(log_, 'a'), b.note(log_, 'b'), c.note(log_, 'c');
  for (Probe<Io>* io : {&a, &b, &c}) EXPECT_TRUE((*io)->start());
  turn();
  b->stop();
  turn();
  EXPECT_TRUE(b->start());
  turn();
  EXPECT_EQ(log_, "cbacabca");
  EXPECT_EQ(loop_->metrics().active_fds, 1u);
}

TEST_P(IoTest, StopRemovesInterestOfOneOfSeveralWatchers) {
  Sockets pair;
  Probe<Io> reader{*loop_, pair.near(), Events::read};
  Probe<Io> writer{*loop_, pair.near(), Events::write};
  EXPECT_TRUE(reader->start());
  EXPECT_TRUE(writer->start());
  turn();
  EXPECT_EQ(writer.calls, 1);
  writer->stop();
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(soon->start(5ms));
  const std::uint64_t before = loop_->iteration();
  EXPECT_TRUE(run_until(*loop_, [&] { return soon.calls > 0; }));
  EXPECT_LE(loop_->iteration() - before, 6u) << "the loop did not sleep";
  EXPECT_EQ(writer.calls, 1);
}

TEST_P(IoTest, ModifyChangesInterestWhileActive) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 0);
  io->modify(Events::write);
  EXPECT_TRUE(io->is_active());
  EXPECT_EQ(io->events(), Events::write);
  turn();
  EXPECT_EQ(io.events, Events::write);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  io->modify(kReadWrite);
  turn();
  EXPECT_EQ(io.events, kReadWrite);
  io->modify(Events::read);
  turn();
  EXPECT_EQ(io.events, Events::read);
  EXPECT_EQ(io.calls, 3);
}

TEST_P(IoTest, ModifyWhileInactiveDoesNotStartIt) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::read};
  io->modify(Events::write);
  EXPECT_FALSE(io->is_active());
  turn();
  EXPECT_EQ(io.calls, 0);
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.events, Events::write);
}

TEST_P(IoTest, ModifyInsideCallbackAppliesFromNextTurnOn) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::write};
  io.then = [&] { io->modify(Events::read); };
  EXPECT_TRUE(io->start());
  turn(3);
  EXPECT_EQ(io.calls, 1);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  turn();
  EXPECT_EQ(io.calls, 2);
  EXPECT_EQ(io.events, Events::read);
}

TEST_P(IoTest, ModifyDiscardsQueuedEventsOutsideNewInterest) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), kReadWrite};
  Probe<Check> first{*loop_};
  first->set_priority(2);
  Events next = Events::write;
  first.then = [&] { io->modify(next); };
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(first->start());
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events, Events::write);
  next = Events::read;
  turn();
  EXPECT_EQ(io.calls, 1) << "it was ready for what it no longer asks for";
}

TEST_P(IoTest, ModifyToNoEventsPauses) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  EXPECT_TRUE(io->start());
  io->modify(Events::none);
  EXPECT_TRUE(io->is_active());
  EXPECT_EQ(loop_->active_count(), 1);
  turn(2);
  EXPECT_EQ(io.calls, 0);
  io->modify(Events::write);
  turn();
  EXPECT_EQ(io.calls, 1);
  io->modify(Events::none);
  pipe.read_end.reset();  // An error is reported without any interest, so a paused watcher must not
                          // spin.
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(soon->start(5ms));
  const std::uint64_t before = loop_->iteration();
  while (soon.calls == 0) EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_LE(loop_->iteration() - before, 6u);
}

TEST_P(IoTest, StopInsideCallbackTakesEffect) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  io.then = [&] { io->stop(); };
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 1);
  EXPECT_FALSE(io->is_active());
}

TEST_P(IoTest, WatcherStoppedByEarlierCallbackIsNotCalled) {
  Sockets pair;
  Probe<Io> a{*loop_, pair.near(), Events::write};
  Probe<Io> b{*loop_, pair.near(), Events::write};
  a->set_priority(1);
  a.then = [&] {
    EXPECT_EQ(b->is_pending(), b->is_active());
    b->stop();
    EXPECT_FALSE(b->is_pending());
  };
  EXPECT_TRUE(a->start());
  EXPECT_TRUE(b->start());
  turn(2);
  EXPECT_EQ(a.calls, 2);
  EXPECT_EQ(b.calls, 0);
}

TEST_P(IoTest, StartAndStopAreIdempotent) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  io->stop();
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(io->start());
  EXPECT_FALSE(io->start_now());
  EXPECT_EQ(loop_->active_count(), 1);
  turn();
  EXPECT_EQ(io.calls, 1);
  io->stop();
  io->stop();
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(IoTest, StopAndRestartInOneTurnCostsNoKernelCall) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  EXPECT_TRUE(io->start());
  turn();
  const std::uint64_t before = modifies();
  for (int i = 0; i < 10; ++i) {
    io->stop();
    EXPECT_TRUE(io->start());
    turn();
  }
  EXPECT_EQ(modifies(), before);
  EXPECT_EQ(io.calls, 11);
}

TEST_P(IoTest, ModifyAndRevertCostsNoKernelCall) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  const std::uint64_t before = modifies();
  io->modify(kReadWrite);
  io->modify(Events::read);
  turn();
  EXPECT_EQ(modifies(), before);
}

TEST_P(KernelSetIoTest, ManyChangesOfOneDescriptorInTurnCostOneKernelCall) {
  Sockets pair;
  Probe<Io> a{*loop_, pair.near(), Events::read};
  Probe<Io> b{*loop_, pair.near(), Events::write};
  const std::uint64_t before = modifies();
  EXPECT_TRUE(a->start());
  EXPECT_TRUE(b->start());
  a->modify(Events::write);
  EXPECT_EQ(modifies(), before) << "start() entered the kernel";
  turn();
  EXPECT_EQ(modifies(), before + 1);
}

TEST_P(IoTest, StartAndStopBeforeWaitCostsNoKernelCall) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  const std::uint64_t before = modifies();
  EXPECT_TRUE(io->start());
  io->stop();
  turn();
  EXPECT_EQ(io.calls, 0);
  EXPECT_EQ(modifies(), before);
}

TEST_P(IoTest, HangUpOfPipeIsReportedAsReadable) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  pipe.write_end.reset();
  turn();
  EXPECT_EQ(io.events, Events::read);
}

TEST_P(IoTest, HangUpIsReportedAsReadableAndWritable) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), kReadWrite};
  EXPECT_TRUE(io->start());
  pipe.write_end.reset();
  turn();
  EXPECT_EQ(io.events, kReadWrite);
}

TEST_P(IoTest, ErrorIsReportedAsReadableAndWritable) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), kReadWrite};
  EXPECT_TRUE(io->start());
  pipe.read_end.reset();
  turn();
  EXPECT_EQ(io.events, kReadWrite);
}

TEST_P(IoTest, ResetIsReportedToWriteOnlyWatcher) {
  Sockets pair{true};
  Probe<Io> io{*loop_, pair.near(), Events::write};
  while (::write(pair.near(), log_.data(), 0) == 0 &&
         ::send(pair.near(), "0123456789", 10, 0) > 0) {
  }
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 0);
  const linger abortive{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(pair.far(), SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive)), 0);
  pair.far_end.reset();
  EXPECT_TRUE(run_until(*loop_, [&] { return io.calls > 0; }));
  EXPECT_EQ(io.events, Events::write);
}

TEST_P(IoTest, PeerClosedReportsHalfCloseWithUnreadData) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::read | Events::peer_closed};
  EXPECT_TRUE(io->start());
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  turn();
  EXPECT_EQ(io.events, Events::read);
  ASSERT_EQ(::shutdown(pair.far(), SHUT_WR), 0);
  turn();
  EXPECT_EQ(io.events, Events::read | Events::peer_closed);
}

TEST_P(IoTest, PeerClosedCanBeRequestedAlone) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::peer_closed};
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 0);
  ASSERT_EQ(::shutdown(pair.far(), SHUT_WR), 0);
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events, Events::peer_closed);
}

TEST_P(IoTest, PeerClosedIsNotReportedForData) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::peer_closed};
  EXPECT_TRUE(io->start());
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  turn(2);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(SleepingIoTest, PeerClosedAloneWithUnreadDataLetsLoopSleep) {
  Sockets pair;
  Probe<Io> io{*loop_, pair.near(), Events::peer_closed};
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(io->start());
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  EXPECT_TRUE(soon->start(5ms));
  while (soon.calls == 0) EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_LE(loop_->iteration(), 6u);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoTest, UrgentReportsOutOfBandData) {
  Sockets pair{true};
  Probe<Io> io{*loop_, pair.near(), Events::urgent};
  EXPECT_TRUE(io->start());
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  turn(2);
  EXPECT_EQ(io.calls, 0);
  ASSERT_EQ(::send(pair.far(), "!", 1, MSG_OOB), 1);
  EXPECT_TRUE(run_until(*loop_, [&] { return io.calls > 0; }));
  EXPECT_EQ(io.events, Events::urgent);
}

TEST_P(IoTest, TwoLoopsWatchOneDescriptor) {
  const std::unique_ptr<Loop> other = make_loop(backend());
  Pipe pipe;
  Probe<Io> here{*loop_, pipe.in(), Events::read};
  Probe<Io> there{*other, pipe.in(), Events::read};
  EXPECT_TRUE(here->start());
  EXPECT_TRUE(there->start());
  pipe.fill();
  turn();
  testing::turn(*other);
  EXPECT_EQ(here.calls, 1);
  EXPECT_EQ(there.calls, 1);
}

TEST_P(IoTest, MoreReadyDescriptorsThanOneBatchHoldsAreAllReported) {
  constexpr std::size_t kPairs = 300;
  std::vector<Pipe> pipes(kPairs);
  std::vector<std::unique_ptr<Probe<Io>>> ios;
  for (const Pipe& pipe : pipes) {
    ios.push_back(std::make_unique<Probe<Io>>(*loop_, pipe.in(), Events::read));
    EXPECT_TRUE(ios.back()->watcher.start());
    pipe.fill();
  }
  turn(3);
  for (std::size_t i = 0; i < kPairs; ++i) EXPECT_GT(ios[i]->calls, 0) << "number " << i;
}

}  // namespace
}  // namespace spate::testing
