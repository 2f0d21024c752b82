// A storm of signals that interrupt every system call, while everything is in use: libuv 04289fa32,
// libev 4.28, and every loop that once mistook EINTR for an error or a timeout.
#include <sys/time.h>

#include <csignal>
#include <thread>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class InterruptedTest : public OnEveryBackend {
 protected:
  void SetUp() override {
    struct sigaction rude{};
    rude.sa_handler = [](int) {};  // Without SA_RESTART.
    ASSERT_EQ(::sigaction(SIGALRM, &rude, &before_), 0);
    const itimerval often{.it_interval = {0, 100}, .it_value = {0, 100}};
    ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  void TearDown() override {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
};
SPATE_ON_EVERY_BACKEND(InterruptedTest);

TEST_P(InterruptedTest, NoEventIsLostAndNoTimerIsEarly) {
  Pipe pipe;
  const TempDir dir;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  Probe<Timer> timer{*loop_};
  Probe<Signal> signal{*loop_};
  Probe<Async> async{*loop_};
  Probe<Stat> stat{*loop_};
  io.then = [&] { pipe.drain(); };
  EXPECT_TRUE(io->start());
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_TRUE(async->start());
  EXPECT_FALSE(stat->start(dir.file("file")));
  int posted = 0;
  for (int round = 1; round <= 10; ++round) {
    Nanos early{0};
    EXPECT_TRUE(timer->start(2ms));
    const Nanos deadline = timer->deadline();
    timer.then = [&, deadline] { early = deadline - loop_->now(); };
    pipe.fill();
    ::raise(SIGUSR1);
    std::thread other([&] {
      async->send();
      EXPECT_TRUE(loop_->post([&] { ++posted; }));
    });
    EXPECT_TRUE(run_until(*loop_,
                          [&] {
                            return io.calls == round && timer.calls == round &&
                                   signal.calls == round && async.calls == round && posted == round;
                          }))
        << "in round " << round;
    other.join();
    EXPECT_LE(early, 0ns);
  }
  dir.append("file");
  EXPECT_TRUE(run_until(*loop_, [&] { return stat.calls > 0; }));
}

TEST_P(InterruptedTest, SignalFloodDoesNotStarveOtherWatchers) {
  Probe<Signal> signal{*loop_};
  Probe<Timer> timer{*loop_};
  EXPECT_FALSE(signal->start(SIGALRM));
  EXPECT_TRUE(timer->start(10ms));
  EXPECT_TRUE(run_until(*loop_, [&] { return timer.calls == 1 && signal.calls > 1; }));
  signal->stop();
}

}  // namespace
}  // namespace spate::testing
