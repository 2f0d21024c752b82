// Dispatcher: a layer that receives events itself.
#include "spate/layer/layer.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class Recorder final : public Dispatcher {
 public:
  void ready(Loop& loop, FdNode& node, Events events) override {
    log += 'r';
    seen = events;
    Dispatcher::ready(loop, node, events);
  }
  void expired(Loop& loop, TimerNode& node) override {
    log += 'e';
    EXPECT_EQ(node.head.active, 0u);
    Dispatcher::expired(loop, node);
  }
  void run_pending(Loop& loop) override {
    Due due;
    for (int taken = 0; taken < limit && loop.take(due); ++taken) {
      EXPECT_EQ(due.node->pending, 0u);
      log += 't';
      due.node->callback(due.node->context, *due.node, due.events);
    }
  }
  void before_wait(Loop&) override { log += '['; }
  void after_wait(Loop&) override { log += ']'; }

  std::string log;
  Events seen = Events::none;
  int limit = 1000;
};

class DispatcherTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  Recorder recorder_;
  std::unique_ptr<Loop> loop_ =
      std::move(*NodeLoop::create({.loop = {.backend = GetParam()}, .dispatcher = &recorder_}));
};
SPATE_ON_EVERY_BACKEND(DispatcherTest);

TEST_P(DispatcherTest, DispatcherReceivesReadyAndExpiredEvents) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(0ns, 1h));
  turn(*loop_);
  EXPECT_EQ(recorder_.log, "[]rett");
  EXPECT_EQ(recorder_.seen, Events::write);
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(timer.calls, 1);
  EXPECT_TRUE(timer->is_active()) << "the default restarts a repeating one";
  EXPECT_EQ(loop_->metrics().events, 2u);
}

TEST_P(DispatcherTest, DispatcherMayLeaveEventsForNextTurn) {
  Probe<Timer> a{*loop_};
  Probe<Timer> b{*loop_};
  EXPECT_TRUE(a->feed());
  EXPECT_TRUE(b->feed());
  recorder_.limit = 1;
  turn(*loop_);
  EXPECT_EQ(a.calls, 1);
  EXPECT_EQ(b.calls, 0);
  EXPECT_EQ(loop_->pending_count(), 1u);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(b.calls, 1);
}

TEST_P(DispatcherTest, DispatcherDoesNotReceiveInternalNodes) {
  Pipe pipe;
  int calls = 0;
  EXPECT_FALSE(loop_->once(pipe.out(), Events::write, 1h, [&](Events) { ++calls; }));
  EXPECT_FALSE(loop_->after(0ns, [&] { ++calls; }));
  EXPECT_TRUE(loop_->post([&] { ++calls; }));
  EXPECT_TRUE(loop_->defer([&] { ++calls; }));
  turn(*loop_, 2);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(recorder_.log, "[][]");
}

TEST_P(DispatcherTest, DispatcherReceivesEachWatcherOfOneDescriptorButInternalOnes) {
  Pipe pipe;
  Probe<Io> a{*loop_, pipe.out(), Events::write};
  Probe<Io> b{*loop_, pipe.out(), Events::write};
  int calls = 0;
  EXPECT_TRUE(a->start());
  EXPECT_FALSE(loop_->once(pipe.out(), Events::write, 1h, [&](Events) { ++calls; }));
  EXPECT_TRUE(b->start());
  turn(*loop_);
  EXPECT_EQ(a.calls, 1);
  EXPECT_EQ(b.calls, 1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(recorder_.log, "[]rrtt");
}

TEST_P(DispatcherTest, DispatcherReceivesRefusals) {
  Probe<Io> io{*loop_, INT32_MAX, Events::read};
  EXPECT_TRUE(io->start());
  turn(*loop_);
  EXPECT_TRUE(any(recorder_.seen & Events::error));
  EXPECT_EQ(io.calls, 1);
}

TEST_P(DispatcherTest, WatcherStoppedByEarlierOneIsSkipped) {
  Probe<Timer> a{*loop_};
  auto b = std::make_unique<Probe<Timer>>(*loop_);
  Probe<Timer> c{*loop_};
  a.then = [&] { b.reset(); };
  EXPECT_TRUE(a->feed());
  EXPECT_TRUE(b->watcher.feed());
  EXPECT_TRUE(c->feed());
  turn(*loop_);
  EXPECT_EQ(a.calls, 1);
  EXPECT_EQ(c.calls, 1);
  EXPECT_EQ(recorder_.log, "[]tt");
}

}  // namespace
}  // namespace spate::testing
