// Io: descriptors that the kernel refuses, and those it treats as always ready.
#include <sys/resource.h>

#include <climits>

#include "spate/error.h"
#include "tests/conformance/harness.h"
#include "tests/support/missing.h"
#include "tests/support/system_error.h"

namespace spate::testing {
namespace {

using IoErrorsTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(IoErrorsTest);
using SelectErrorsTest = OnEveryBackend;
SPATE_ON_BACKENDS_WHERE(SelectErrorsTest, uses_select);

int closed_number() {
  const Pipe pipe;
  return pipe.in();
}

Fd open_regular_file(const TempDir& dir) {
  dir.append("file");
  return Fd(::open(dir.file("file").c_str(), O_RDWR | O_CLOEXEC));
}

// Returns a duplicate with a number of at least `least`; none where the limits forbid it.
Fd duplicate_above(int fd, int least) {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur <= static_cast<rlim_t>(least)) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(least) + 64);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, least));
}

TEST_P(IoErrorsTest, ClosedDescriptorReportsErrorLater) {
  Probe<Io> io{*loop_, closed_number(), kReadWrite};
  EXPECT_TRUE(io->start());
  EXPECT_EQ(io.calls, 0);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 1);
  EXPECT_TRUE(any(io.events & Events::error));
  EXPECT_EQ(io->error(), system_error(EBADF));
  EXPECT_FALSE(io->is_active());
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(IoErrorsTest, HugeDescriptorIsErrorWithoutAllocation) {
  Probe<Io> io{*loop_, INT_MAX, Events::read};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io->error(), system_error(EBADF));
  EXPECT_EQ(io->start_now(), system_error(EBADF));
  EXPECT_FALSE(io->is_active());
}

TEST_P(IoErrorsTest, AllWatchersOfRefusedDescriptorAreCalled) {
  const int fd = closed_number();
  Probe<Io> a{*loop_, fd, Events::read};
  Probe<Io> b{*loop_, fd, Events::write};
  EXPECT_TRUE(a->start());
  EXPECT_TRUE(b->start());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(a.calls, 1);
  EXPECT_EQ(b.calls, 1);
  EXPECT_TRUE(any(b.events & Events::error));
}

TEST_P(IoErrorsTest, RefusedWatcherMayBeRestartedInItsCallback) {
  Pipe pipe;
  Probe<Io> io{*loop_, closed_number(), Events::read};
  io.then = [&] {
    io.then = [&] { io->stop(); };
    io->set(pipe.out(), Events::write);
    EXPECT_TRUE(io->start());
  };
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 2);
  EXPECT_EQ(io.events, Events::write);
}

TEST_P(IoErrorsTest, RefusedWatcherIsNotCalledIfStoppedFirst) {
  Probe<Io> io{*loop_, INT_MAX, Events::read};
  EXPECT_TRUE(io->start());
  io->stop();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoErrorsTest, DescriptorClosedWhileActiveDoesNotSpinLoop) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  pipe.read_end.reset();
  pipe.write_end.reset();
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(soon->start(5ms));
  const std::uint64_t before = loop_->iteration();
  EXPECT_TRUE(run_until(*loop_, [&] { return soon.calls > 0; }));
  EXPECT_LE(loop_->iteration() - before, 6u);
  EXPECT_LE(io.calls, 1);
  if (io.calls == 1) EXPECT_EQ(io->error(), system_error(EBADF));
}

TEST_P(IoErrorsTest, StartNowReportsClosedDescriptorAtOnce) {
  Probe<Io> io{*loop_, closed_number(), Events::read};
  EXPECT_EQ(io->start_now(), system_error(EBADF));
  EXPECT_FALSE(io->is_active());
  EXPECT_FALSE(io->is_pending());
  EXPECT_EQ(loop_->active_count(), 0);
  turn(2);
  EXPECT_EQ(io.calls, 0);
}

TEST_P(IoErrorsTest, StartNowOnGoodDescriptorReports) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  EXPECT_FALSE(io->start_now());
  EXPECT_TRUE(io->is_active());
  const std::uint64_t before = modifies();
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(modifies(), before) << "the kernel was told twice";
}

TEST_P(IoErrorsTest, StartNowDoesNotAffectOtherWatchers) {
  const TempDir dir;
  const Fd file = open_regular_file(dir);
  Probe<Io> lazy{*loop_, file.get(), Events::read};
  EXPECT_TRUE(lazy->start());
  turn();
  EXPECT_EQ(lazy.calls, 1);
  Probe<Io> prompt{*loop_, file.get(), Events::write};
  EXPECT_EQ(prompt->start_now(), has_kernel_set() ? system_error(EPERM) : std::error_code());
  turn();
  EXPECT_EQ(lazy.calls, 2);
  EXPECT_EQ(prompt.calls, has_kernel_set() ? 0 : 1);
}

TEST_P(IoErrorsTest, StartNowOnRegularFileIsRefusedByKernelSetsOnly) {
  const TempDir dir;
  const Fd file = open_regular_file(dir);
  Probe<Io> io{*loop_, file.get(), Events::read};
  EXPECT_EQ(io->start_now(), has_kernel_set() ? system_error(EPERM) : std::error_code());
  EXPECT_EQ(io->is_active(), !has_kernel_set());
}

TEST_P(IoErrorsTest, RegularFileIsAlwaysReady) {
  const TempDir dir;
  const Fd file = open_regular_file(dir);
  Probe<Io> io{*loop_, file.get(), kReadWrite};
  Probe<Io> reader{*loop_, file.get(), Events::read};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(reader->start());
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(loop_->run(Run::once));
    EXPECT_EQ(io.calls, i);
    EXPECT_EQ(reader.calls, i);
  }
  EXPECT_EQ(io.events, kReadWrite);
  EXPECT_EQ(reader.events, Events::read);
}

TEST_P(IoErrorsTest, DevNullIsAlwaysReady) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Probe<Io> io{*loop_, null.get(), Events::write};
  EXPECT_TRUE(io->start());
  turn(2);
  EXPECT_EQ(io.calls, 2);
  EXPECT_EQ(io.events, Events::write);
}

TEST_P(IoErrorsTest, RegularFileCanBeModifiedAndRestarted) {
  const TempDir dir;
  const Fd file = open_regular_file(dir);
  Probe<Io> io{*loop_, file.get(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  io->modify(Events::write);
  turn();
  EXPECT_EQ(io.events, Events::write);
  io->stop();
  turn();
  EXPECT_EQ(io.calls, 2);
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 3);
}

TEST_P(IoErrorsTest, StoppedRegularFileLetsLoopSleep) {
  const TempDir dir;
  const Fd file = open_regular_file(dir);
  Probe<Io> io{*loop_, file.get(), Events::read};
  EXPECT_TRUE(io->start());
  turn();
  io->stop();
  Probe<Timer> soon{*loop_};
  EXPECT_TRUE(soon->start(5ms));
  const std::uint64_t before = loop_->iteration();
  EXPECT_TRUE(run_until(*loop_, [&] { return soon.calls > 0; }));
  EXPECT_LE(loop_->iteration() - before, 6u) << "the loop did not sleep";
}

TEST_P(IoErrorsTest, RegularFileDescriptorMayBeReusedForPipe) {
  const TempDir dir;
  Fd file = open_regular_file(dir);
  const int number = file.get();
  Probe<Io> io{*loop_, number, Events::read};
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 1);
  io->stop();
  Pipe pipe;
  ASSERT_EQ(::dup2(pipe.in(), number), number);
  io->set(number, Events::read);
  EXPECT_TRUE(io->start());
  turn(2);
  EXPECT_EQ(io.calls, 1);
  pipe.fill();
  turn();
  EXPECT_EQ(io.calls, 2);
}

TEST_P(IoErrorsTest, LargeDescriptorsWorkExceptWithSelect) {
  Pipe pipe;
  const Fd high = duplicate_above(pipe.out(), 5000);
  if (high.get() < 0) GTEST_SKIP() << too_few_descriptors(5010);
  Probe<Io> io{*loop_, high.get(), Events::write};
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events == Events::write, !is_select());
  EXPECT_EQ(any(io.events & Events::error), is_select());
  EXPECT_EQ(io->is_active(), !is_select());
}

TEST_P(SelectErrorsTest, SelectRefusesDescriptorsBeyondItsSetOnBothPaths) {
  Pipe pipe;
  const Fd beyond = duplicate_above(pipe.out(), FD_SETSIZE);
  if (beyond.get() < 0) GTEST_SKIP() << too_few_descriptors(FD_SETSIZE + 10);
  Probe<Io> io{*loop_, beyond.get(), Events::write};
  EXPECT_EQ(io->start_now(), Error::fd_out_of_range);
  EXPECT_FALSE(io->is_active());
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 1);
  EXPECT_TRUE(any(io.events & Events::error));
  EXPECT_TRUE(io->error());
}

TEST_P(SelectErrorsTest, SelectAcceptsHighestSupportedDescriptor) {
  Pipe pipe;
  ASSERT_EQ(::fcntl(FD_SETSIZE - 1, F_GETFD), -1) << "the number is taken";
  const Fd highest = duplicate_above(pipe.out(), FD_SETSIZE - 1);
  if (highest.get() != FD_SETSIZE - 1) GTEST_SKIP() << too_few_descriptors(FD_SETSIZE);
  Probe<Io> io{*loop_, highest.get(), Events::write};
  EXPECT_FALSE(io->start_now());
  turn();
  EXPECT_EQ(io.calls, 1);
}

}  // namespace
}  // namespace spate::testing
