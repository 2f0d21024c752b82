// poll_fd() and prepare_to_wait(): a spate loop inside another loop.
#include <poll.h>

#include <thread>

#include "spate/error.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

bool is_readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

// Drives an inner loop inside an outer one, as the header says. The inner loop replaces its
// descriptor when it must drop a closed one, so it is queried each time.
class Embedded {
 public:
  Embedded(Loop& outer, Loop& inner)
      : inner_(inner),
        before_wait_(outer, bind<&Embedded::prepare>(this)),
        ready_(outer, bind<&Embedded::sweep>(this)),
        timeout_(outer, bind<&Embedded::sweep>(this)) {
    EXPECT_TRUE(before_wait_.start());
  }

  int sweeps() const { return sweeps_; }

 private:
  void prepare() {
    const Nanos wait = inner_.prepare_to_wait();
    const int fd = inner_.poll_fd().value_or(-1);
    if (fd != ready_.fd()) {
      ready_.stop();
      ready_.set(fd, Events::read);
      EXPECT_TRUE(ready_.start());
    }
    timeout_.stop();
    if (wait < kForever) EXPECT_TRUE(timeout_.start(wait));
  }
  void sweep() {
    ++sweeps_;
    EXPECT_FALSE(inner_.run(Run::no_wait));
  }

  Loop& inner_;
  Prepare before_wait_;
  Io ready_;
  Timer timeout_;
  int sweeps_ = 0;
};

class EmbeddingTest : public OnEveryBackend {
 protected:
  // The outer loop uses the backend under test, and the inner one, too, if it has a descriptor.
  std::unique_ptr<Loop> inner_ = make_loop(has_kernel_set() ? backend() : kKernelSet);
};
SPATE_ON_EVERY_BACKEND(EmbeddingTest);

TEST_P(EmbeddingTest, OnlyKernelSetsHaveDescriptor) {
  if (has_kernel_set()) {
    EXPECT_TRUE(loop_->poll_fd());
  } else {
    ASSERT_FALSE(loop_->poll_fd());
    EXPECT_EQ(loop_->poll_fd().error(), Error::not_pollable);
  }
}

TEST_P(EmbeddingTest, PrepareToWaitReturnsTimeout) {
  Probe<Timer> timer{*loop_};
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  EXPECT_EQ(loop_->prepare_to_wait(), kForever);
  EXPECT_TRUE(timer->start(1h));
  const Nanos wait = loop_->prepare_to_wait();
  EXPECT_GT(wait, 0ns);
  EXPECT_LE(wait, 1h);
  EXPECT_TRUE(loop_->post([] {}));
  EXPECT_EQ(loop_->prepare_to_wait(), 0ns);
  turn();
  Probe<Idle> idle{*loop_};
  EXPECT_TRUE(idle->start());
  EXPECT_EQ(loop_->prepare_to_wait(), 0ns);
}

TEST_P(EmbeddingTest, IdleInnerLoopAllowsIndefiniteWait) {
  EXPECT_EQ(loop_->prepare_to_wait(), kForever);
}

TEST_P(EmbeddingTest, DescriptorIsReadableWhenThereIsWork) {
  Pipe pipe;
  Probe<Io> io{*inner_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  EXPECT_EQ(inner_->prepare_to_wait(), kForever);
  const int fd = *inner_->poll_fd();
  EXPECT_FALSE(is_readable(fd));
  pipe.fill();
  EXPECT_TRUE(is_readable(fd));
  testing::turn(*inner_);
  EXPECT_EQ(io.calls, 1);
  pipe.drain();
  inner_->prepare_to_wait();
  EXPECT_FALSE(is_readable(fd));
}

TEST_P(EmbeddingTest, PostMakesDescriptorReadable) {
  int calls = 0;
  inner_->ref();
  EXPECT_EQ(inner_->prepare_to_wait(), kForever);
  std::thread([&] { EXPECT_TRUE(inner_->post([&] { ++calls; })); }).join();
  EXPECT_TRUE(is_readable(*inner_->poll_fd()));
  testing::turn(*inner_);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(inner_->prepare_to_wait(), kForever);
  EXPECT_FALSE(is_readable(*inner_->poll_fd()));
  inner_->unref();
}

TEST_P(EmbeddingTest, InnerLoopWatchersWorkInsideOuterLoop) {
  Embedded embedded{*loop_, *inner_};
  Pipe pipe;
  Probe<Io> io{*inner_, pipe.in(), Events::read};
  Probe<Timer> timer{*inner_};
  Probe<Async> async{*inner_};
  Probe<Signal> signal{*inner_};
  io.then = [&] { pipe.drain(); };
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(2ms));
  EXPECT_TRUE(async->start());
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_TRUE(run_until(*loop_, [&] { return timer.calls == 1; }));
  pipe.fill();
  EXPECT_TRUE(run_until(*loop_, [&] { return io.calls == 1; }));
  std::thread sender([&] { async->send(); });
  EXPECT_TRUE(run_until(*loop_, [&] { return async.calls == 1; }));
  sender.join();
  ::raise(SIGUSR1);
  EXPECT_TRUE(run_until(*loop_, [&] { return signal.calls == 1; }));
  int posted = 0;
  std::thread poster([&] { EXPECT_TRUE(inner_->post([&] { ++posted; })); });
  EXPECT_TRUE(run_until(*loop_, [&] { return posted == 1; }));
  poster.join();
}

TEST_P(EmbeddingTest, OuterLoopSleepsWhileInnerLoopIsIdle) {
  Embedded embedded{*loop_, *inner_};
  Pipe pipe;
  Probe<Io> io{*inner_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(soon->start(10ms));
  while (soon.calls == 0) EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_LE(loop_->iteration(), 6u);
  EXPECT_LE(embedded.sweeps(), 1);
}

TEST_P(EmbeddingTest, WatcherStartedInOuterCallbackIsServed) {
  Embedded embedded{*loop_, *inner_};
  Pipe pipe;
  Probe<Io> io{*inner_, pipe.out(), Events::write};
  io.then = [&] { io->stop(); };
  Probe<Timer> timer{*loop_};
  timer.then = [&] { EXPECT_TRUE(io->start()); };
  EXPECT_TRUE(timer->start(1ms));
  EXPECT_TRUE(run_until(*loop_, [&] { return io.calls == 1; }));
}

TEST_P(EmbeddingTest, EvictedDuplicateDoesNotBlockOuterLoopEvents) {
  Embedded embedded{*loop_, *inner_};
  Pipe phantom;
  Pipe pipe;
  const Fd survivor(::dup(phantom.in()));
  Probe<Io> gone{*inner_, phantom.in(), Events::read};
  Probe<Io> io{*inner_, pipe.in(), Events::read};
  EXPECT_TRUE(gone->start());
  EXPECT_TRUE(io->start());
  turn();
  gone->stop_before_close();
  phantom.read_end.reset();
  phantom.fill();
  turn(8);
  EXPECT_LE(inner_->metrics().stale_events, 4u);
  pipe.fill();
  EXPECT_TRUE(run_until(*loop_, [&] { return io.calls > 0; }, 300ms));
}

}  // namespace
}  // namespace spate::testing
