// Io: several files under one number, one after another. These are the two hazards of registering
// late.
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class IoReuseTest : public OnEveryBackend {
 protected:
  // Makes `number` refer to another file.
  static void reopen(int number, int as) { ASSERT_EQ(::dup2(as, number), number); }

  // Returns how many turns the loop makes in ten milliseconds.
  std::uint64_t turns_while_resting() {
    Probe<Timer> pause{*loop_};
    EXPECT_TRUE(pause->start(10ms));
    const std::uint64_t before = loop_->iteration();
    while (pause.calls == 0) EXPECT_FALSE(loop_->run(Run::once));
    return loop_->iteration() - before;
  }
};
SPATE_ON_EVERY_BACKEND(IoReuseTest);

TEST_P(IoReuseTest, ReopenedDescriptorDeliversToAnotherWatcher) {
  Pipe first;
  Pipe second;
  const int number = first.in();
  auto old = std::make_unique<Probe<Io>>(*loop_, number, Events::read);
  EXPECT_TRUE(old->watcher.start());
  turn();
  old.reset();
  reopen(number, second.in());
  Probe<Io> fresh{*loop_, number, Events::read};
  EXPECT_TRUE(fresh->start());
  second.fill();
  turn();
  EXPECT_EQ(fresh.calls, 1);
}

TEST_P(IoReuseTest, ReopenedDescriptorDeliversToSameWatcherAfterSet) {
  Pipe first;
  Pipe second;
  const int number = first.in();
  Probe<Io> io{*loop_, number, Events::read};
  EXPECT_TRUE(io->start());
  turn();
  io->stop();
  reopen(number, second.in());
  io->set(number, Events::read);
  EXPECT_TRUE(io->start());
  second.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
}

TEST_P(IoReuseTest, DescriptorReopenedInsideCallbackDelivers) {
  Pipe first;
  Pipe second;
  const int number = first.in();
  Probe<Io> io{*loop_, number, Events::read};
  io.then = [&] {
    io.then = nullptr;
    io->stop();
    reopen(number, second.in());
    io->set(number, Events::read);
    EXPECT_TRUE(io->start());
  };
  EXPECT_TRUE(io->start());
  first.fill();
  turn(3);
  EXPECT_EQ(io.calls, 1) << "the new file is not readable";
  second.fill();
  turn();
  EXPECT_EQ(io.calls, 2);
}

TEST_P(IoReuseTest, ReopenedDescriptorDeliversAfterStopBeforeClose) {
  Pipe first;
  Pipe second;
  const int number = first.in();
  Probe<Io> io{*loop_, number, Events::read};
  EXPECT_TRUE(io->start());
  turn();
  io->stop_before_close();
  EXPECT_FALSE(io->is_active());
  reopen(number, second.in());
  io->set(number, Events::read);
  EXPECT_TRUE(io->start());
  second.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
}

TEST_P(IoReuseTest, StopBeforeCloseSavesKernelCall) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  const std::uint64_t before = modifies();
  io->stop_before_close();
  pipe.read_end.reset();
  turn();
  EXPECT_EQ(modifies(), before);
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(IoReuseTest, StopBeforeCloseDiscardsQueuedEvents) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  Probe<Check> closer{*loop_};
  closer->set_priority(2);
  closer.then = [&] {
    io->stop_before_close();
    pipe.read_end.reset();
  };
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(closer->start());
  pipe.fill();
  turn(2);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoReuseTest, StopBeforeCloseOfInactiveWatcherDoesNothing) {
  Pipe pipe;
  Probe<Io> idle{*loop_, pipe.in(), Events::read};
  Probe<Io> other{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(other->start());
  idle->stop_before_close();
  pipe.fill();
  turn();
  EXPECT_EQ(other.calls, 1);
}

TEST_P(IoReuseTest, EventOfEarlierGenerationIsDropped) {
  Pipe first;
  Pipe second;
  const int number = first.in();
  const Fd survivor(::dup(number));  // Keeps the first pipe in epoll's set.
  auto old = std::make_unique<Probe<Io>>(*loop_, number, Events::read);
  EXPECT_TRUE(old->watcher.start());
  turn();
  old->watcher.stop_before_close();
  reopen(number, second.in());
  Probe<Io> fresh{*loop_, number, Events::read};
  EXPECT_TRUE(fresh->start());
  first.fill();
  turn(5);
  EXPECT_EQ(fresh.calls, 0) << "the event was the other file's";
  EXPECT_EQ(old->calls, 0);
  second.fill();
  turn();
  EXPECT_EQ(fresh.calls, 1);
}

TEST_P(IoReuseTest, OpenDuplicateDoesNotSpinLoop) {
  Pipe pipe;
  const Fd survivor(::dup(pipe.in()));
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  io->stop_before_close();
  pipe.read_end.reset();
  pipe.fill();
  EXPECT_LE(turns_while_resting(), 10u);
  EXPECT_LE(loop_->metrics().stale_events, 4u);
  EXPECT_LE(turns_while_resting(), 4u);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoReuseTest, OtherDescriptorsDeliverAfterDuplicateWasEvicted) {
  Pipe phantom;
  Pipe pipe;
  const Fd survivor(::dup(phantom.in()));
  Probe<Io> gone{*loop_, phantom.in(), Events::read};
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(gone->start());
  EXPECT_TRUE(io->start());
  turn();
  gone->stop_before_close();
  phantom.read_end.reset();
  phantom.fill();
  turn(6);
  EXPECT_EQ(io.calls, 0);
  pipe.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_TRUE(loop_->post([] {}));
  turn();
  EXPECT_EQ(loop_->metrics().posts, 1u);
}

TEST_P(IoReuseTest, DuplicateOfUnstoppedDescriptorIsEvicted) {
  Pipe pipe;
  const int number = pipe.in();
  const Fd survivor(::dup(number));
  Probe<Io> io{*loop_, number, Events::read};
  EXPECT_TRUE(io->start());
  turn();
  pipe.read_end.reset();  // Against the rules: closed while watched.
  io->stop();
  pipe.fill();
  turn(6);
  EXPECT_LE(turns_while_resting(), 6u);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoReuseTest, ReopeningEachTurnNeverConfusesFiles) {
  Pipe quiet;
  Probe<Io> io{*loop_, -1, Events::read};
  int ready = 0;
  for (int i = 0; i < 100; ++i) {
    Pipe pipe;
    const bool full = i % 3 == 0;
    if (full) pipe.fill();
    io->set(pipe.in(), Events::read);
    EXPECT_TRUE(io->start());
    turn();
    ready += full ? 1 : 0;
    EXPECT_EQ(io.calls, ready) << "in round " << i;
    if (i % 2 == 0) {
      io->stop();
    } else {
      io->stop_before_close();
    }
  }
  EXPECT_EQ(loop_->metrics().stale_events, 0u);
}

// A watcher that takes another's place in a table brings its own generation.
TEST_P(IoReuseTest, WatcherKeepsItsGenerationWhenMovedInTable) {
  Pipe young;
  Pipe old;
  Probe<Io> neighbour{*loop_, young.in(), Events::read};
  Probe<Io> io{*loop_, old.in(), Events::read};
  for (int life = 0; life < 5; ++life) {
    EXPECT_TRUE(io->start());
    turn();
    io->stop();
    turn();
  }
  EXPECT_TRUE(neighbour->start());
  turn();
  EXPECT_TRUE(io->start());
  turn();
  neighbour->stop();
  turn();
  old.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(loop_->metrics().stale_events, 0u);
}

TEST_P(IoReuseTest, ReopenedDescriptorDeliversOtherEvents) {
  Pipe pipe;
  Sockets sockets;
  const int number = pipe.in();
  Probe<Io> io{*loop_, number, Events::read};
  EXPECT_TRUE(io->start());
  turn();
  io->stop();
  reopen(number, sockets.near());
  io->set(number, Events::write);
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events, Events::write);
}

// Closed as promised, but a duplicate keeps the file open, and it returns under the old number.
TEST_P(IoReuseTest, DescriptorRestoredToSameFileDelivers) {
  Pipe pipe;
  const int number = pipe.in();
  Probe<Io> io{*loop_, number, Events::read};
  EXPECT_TRUE(io->start());
  turn();
  const Fd copy(::dup(number));
  io->stop_before_close();
  reopen(number, copy.get());
  io->set(number, Events::read);
  EXPECT_TRUE(io->start());
  pipe.fill();
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events, Events::read);
}

TEST_P(IoReuseTest, UnchangedDescriptorDeliversAtOnceToAnotherWatcher) {
  Pipe pipe;
  for (int i = 0; i < 5; ++i) {
    Probe<Io> io{*loop_, pipe.in(), Events::read};
    EXPECT_TRUE(io->start());
    turn();
    pipe.fill();
    turn();
    EXPECT_EQ(io.calls, 1);
    pipe.drain();
  }
  EXPECT_EQ(loop_->metrics().stale_events, 0u);
}

TEST_P(IoReuseTest, NewWatcherAtSameAddressIsDistinct) {
  Pipe first;
  Pipe second;
  const int number = first.in();
  alignas(Probe<Io>) std::byte place[sizeof(Probe<Io>)];
  auto* io = new (place) Probe<Io>{*loop_, number, Events::read};
  EXPECT_TRUE(io->watcher.start());
  turn();
  io->~Probe();
  reopen(number, second.in());
  io = new (place) Probe<Io>{*loop_, number, Events::read};
  EXPECT_TRUE(io->watcher.start());
  second.fill();
  turn();
  EXPECT_EQ(io->calls, 1);
  io->~Probe();
}

}  // namespace
}  // namespace spate::testing
