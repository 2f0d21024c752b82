// once(): a descriptor or a timeout, whichever comes first.
#include "spate/error.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class OnceTest : public OnEveryBackend {
 protected:
  std::error_code once(int fd, Events events, Nanos timeout) {
    return loop_->once(fd, events, timeout, [this](Events seen) {
      ++calls_;
      seen_ = seen;
    });
  }
  static std::error_code invalid() { return {EINVAL, std::system_category()}; }

  int calls_ = 0;
  Events seen_ = Events::none;
};
SPATE_ON_EVERY_BACKEND(OnceTest);

TEST_P(OnceTest, DescriptorBeforeTimeoutIsReported) {
  Pipe pipe;
  EXPECT_FALSE(once(pipe.out(), Events::read | Events::write, 1h));
  EXPECT_EQ(loop_->active_count(), 2);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(seen_, Events::write);
  EXPECT_EQ(loop_->active_count(), 0);
  turn(2);
  EXPECT_EQ(calls_, 1);
}

TEST_P(OnceTest, TimeoutBeforeDescriptorIsReported) {
  Pipe pipe;
  EXPECT_FALSE(once(pipe.in(), Events::read, 2ms));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(seen_, Events::timer);
  pipe.fill();
  turn(2);
  EXPECT_EQ(calls_, 1);
}

TEST_P(OnceTest, EventAndTimeoutInOneTurnMakeOneCall) {
  Pipe pipe;
  EXPECT_FALSE(once(pipe.out(), Events::write, 0ns));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls_, 1);
}

TEST_P(OnceTest, DescriptorWithoutTimeoutIsReported) {
  Pipe pipe;
  EXPECT_FALSE(once(pipe.in(), Events::read, kForever));
  EXPECT_EQ(loop_->metrics().active_timers, 0u);
  turn(2);
  EXPECT_EQ(calls_, 0);
  pipe.fill();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(seen_, Events::read);
}

TEST_P(OnceTest, MissingDescriptorIsError) {
  EXPECT_EQ(once(-1, Events::read, kForever), invalid());
  EXPECT_EQ(once(-1, Events::none, 1ms), invalid());
  EXPECT_EQ(once(INT_MIN, Events::read, 1ms), invalid());
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls_, 0);
}

TEST_P(OnceTest, EmptyEventSetIsError) {
  Pipe pipe;
  EXPECT_EQ(once(pipe.in(), Events::none, 1ms), invalid());
  EXPECT_EQ(once(pipe.in(), Events::timer, 1ms), invalid());
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(OnceTest, RefusedDescriptorIsReported) {
  const int closed = Pipe().in();
  EXPECT_FALSE(once(closed, Events::read, 1h));
  EXPECT_FALSE(once(INT32_MAX, Events::write, kForever));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls_, 2);
  EXPECT_TRUE(any(seen_ & Events::error));
}

TEST_P(OnceTest, CallbackMayCallOnceAgain) {
  Pipe pipe;
  int rounds = 0;
  struct Again {
    static void ask(Loop& loop, int fd, int& rounds) {
      const std::error_code error = loop.once(fd, Events::write, 1h, [&loop, fd, &rounds](Events) {
        if (++rounds < 5) ask(loop, fd, rounds);
      });
      EXPECT_FALSE(error);
    }
  };
  Again::ask(*loop_, pipe.out(), rounds);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(rounds, 5);
}

TEST_P(OnceTest, CallbackMayCloseDescriptor) {
  auto pipe = std::make_unique<Pipe>();
  EXPECT_FALSE(loop_->once(pipe->out(), Events::write, 1h, [&](Events) { pipe.reset(); }));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(pipe, nullptr);
  turn(2);
}

TEST_P(OnceTest, CallbackMayRunLoop) {
  Pipe pipe;
  EXPECT_FALSE(loop_->once(pipe.out(), Events::write, 0ns, [&](Events) {
    ++calls_;
    EXPECT_FALSE(loop_->after(0ns, [&] { log_ += 'i'; }));
    EXPECT_TRUE(runs_out(*loop_));
    log_ += 'o';
  }));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(log_, "io");
  EXPECT_EQ(calls_, 1);
}

TEST_P(OnceTest, SeveralOneShotsOfDescriptorAreAllCalled) {
  Pipe pipe;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(once(pipe.out(), Events::write, 1h));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls_, 5);
}

TEST_P(OnceTest, DestroyedLoopDropsOneShots) {
  auto other = make_loop(backend());
  Pipe pipe;
  auto shared = std::make_shared<int>(0);
  const auto callback = [shared](Events) { FAIL(); };
  EXPECT_FALSE(other->once(pipe.out(), Events::write, 1h, callback));
  EXPECT_FALSE(other->once(pipe.in(), Events::read, 0ns, callback));
  EXPECT_FALSE(other->once(INT32_MAX, Events::read, 0ns, callback));
  EXPECT_GE(shared.use_count(), 4);
  other.reset();
  EXPECT_EQ(shared.use_count(), 2);
}

TEST_P(OnceTest, RegularFileIsReadyAndDoesNotSpinLoop) {
  const TempDir dir;
  dir.append("file");
  const Fd file(::open(dir.file("file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(once(file.get(), Events::read, 1h));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(seen_, Events::read);
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(soon->start(5ms));
  const std::uint64_t before = loop_->iteration();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_LE(loop_->iteration() - before, 6u);
}

}  // namespace
}  // namespace spate::testing
