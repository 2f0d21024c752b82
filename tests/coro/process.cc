// Waits for other things than connections: signals, children, mail, and work on other threads.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <latch>
#include <memory>
#include <vector>

#include "spate/coro/child.h"
#include "spate/coro/mailbox.h"
#include "spate/coro/offload.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/signals.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "tests/coro/promised.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

class CoroProcess : public ::testing::Test {
 protected:
  CoroProcess() : loop_(must(Loop::create())) {}
  void turns(int count = 5) {
    for (int i = 0; i < count; ++i) EXPECT_FALSE(loop_->run(Run::no_wait));
  }

  std::unique_ptr<Loop> loop_;
};

// ---- signals

Task<int> next_of(coro::Signals* signals) { co_return co_await signals->next(); }
Task<void> note_next(coro::Signals* signals, std::vector<int>* came) {
  const int signum = co_await signals->next();
  came->push_back(signum);
}

TEST_F(CoroProcess, SignalWithoutWaiterIsRecorded) {
  coro::Signals signals(*loop_);
  EXPECT_FALSE(signals.add(SIGUSR1));
  EXPECT_FALSE(signals.add(SIGUSR2));
  for (const int signum : {SIGUSR2, SIGUSR1, SIGUSR2}) std::raise(signum);
  turns();
  EXPECT_EQ(coro::run(*loop_, next_of(&signals)), SIGUSR1);
  EXPECT_EQ(coro::run(*loop_, next_of(&signals)), SIGUSR2);
  std::vector<int> came;
  Scope scope(*loop_);
  scope.spawn(note_next(&signals, &came));
  turns();
  EXPECT_EQ(came, std::vector<int>());
}

TEST_F(CoroProcess, EachSignalResumesOneWaiterAndSkipsCancelledOnes) {
  coro::Signals signals(*loop_);
  EXPECT_FALSE(signals.add(SIGUSR1));
  std::vector<int> came;
  Scope first(*loop_);
  Scope others(*loop_);
  first.spawn(note_next(&signals, &came));
  others.spawn(note_next(&signals, &came));
  others.spawn(note_next(&signals, &came));
  first.cancel();
  std::raise(SIGUSR1);
  turns();
  EXPECT_EQ(came, std::vector<int>{SIGUSR1});
  EXPECT_EQ(others.size(), 1u);
}

TEST_F(CoroProcess, NextWaiterGetsSignalOfCancelledWaiter) {
  coro::Signals signals(*loop_);
  EXPECT_FALSE(signals.add(SIGUSR1));
  std::vector<int> came;
  Scope scope(*loop_);
  cancel_when_promised(*loop_, next_of(&signals), [&] {
    scope.spawn(note_next(&signals, &came));
    std::raise(SIGUSR1);
  });
  turns();
  EXPECT_EQ(came, std::vector<int>{SIGUSR1});
}

TEST_F(CoroProcess, NextReceiverGetsMessageOfCancelledReceiver) {
  coro::Mailbox<int> mailbox(*loop_, 2);
  const auto receive = [](coro::Mailbox<int>* from, int* into) -> Task<void> {
    const std::optional<int> value = co_await from->receive();
    *into = value.value_or(-1);
  };
  int value = 0;
  int other = 0;
  Scope scope(*loop_);
  cancel_when_promised(*loop_, receive(&mailbox, &other), [&] {
    scope.spawn(receive(&mailbox, &value));
    EXPECT_TRUE(mailbox.post(7));
  });
  turns();
  EXPECT_EQ(value, 7);
  EXPECT_EQ(other, 0);
}

TEST_F(CoroProcess, SignalsKeepLoopAliveOnlyWhileAwaited) {
  coro::Signals signals(*loop_);
  EXPECT_FALSE(signals.add(SIGUSR1));
  EXPECT_FALSE(loop_->has_work());
  std::vector<int> came;
  Scope scope(*loop_);
  scope.spawn(note_next(&signals, &came));
  EXPECT_TRUE(loop_->has_work());
  scope.cancel();
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(CoroProcess, UncatchableSignalIsRefused) {
  coro::Signals signals(*loop_);
  EXPECT_EQ(signals.add(SIGKILL), std::errc::invalid_argument);
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(CoroProcess, SignalsMayOutliveTheirLoop) {
  coro::Signals signals(*loop_);
  EXPECT_FALSE(signals.add(SIGUSR1));
  loop_.reset();
}

// ---- children

int child_that_exits(int code) {
  const int pid = fork();
  if (pid == 0) _exit(code);
  return pid;
}
Task<Result<int>> status_of(int pid) { co_return co_await coro::exit_of(pid); }

TEST_F(CoroProcess, ChildStatusIsThatOfWaitpid) {
  const Result<int> status = coro::run(*loop_, status_of(child_that_exits(7)));
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 7);
}

TEST_F(CoroProcess, ProcessThatIsNotChildIsError) {
  EXPECT_EQ(coro::run(*loop_, status_of(getpid())).error(), std::errc::no_child_process);
  EXPECT_EQ(coro::run(*loop_, status_of(0)).error(), std::errc::invalid_argument);
}

TEST_F(CoroProcess, ChildOfCancelledWaitCanBeWaitedForAgain) {
  const int pid = child_that_exits(3);
  const auto impatient = [](Task<Result<int>> wait) -> Task<Result<int>> {
    co_return co_await coro::with_deadline(0s, std::move(wait));
  };
  Scope scope(*loop_);
  const auto ignore = [](Task<Result<int>> wait) -> Task<void> { co_await std::move(wait); };
  scope.spawn(ignore(impatient(status_of(pid))));
  scope.cancel();
  EXPECT_EQ(WEXITSTATUS(coro::run(*loop_, status_of(pid)).value_or(0)), 3);
}

// ---- work elsewhere

TEST_F(CoroProcess, WorkRunsOnAnotherThreadAndItsResultIsReturned) {
  const auto works = [](pthread_t self, ThreadPool* pool) -> Task<Result<int>> {
    int done = 0;
    co_await coro::or_return(coro::offload([&] { done += !pthread_equal(pthread_self(), self); }));
    auto owner = std::make_unique<int>(20);
    auto move_only = [owner = std::move(owner)] { return *owner; };
    done += co_await coro::or_return(coro::offload(std::move(move_only), *pool));
    const auto fails = []() -> Result<int> {
      return std::unexpected(std::make_error_code(std::errc::io_error));
    };
    const Result<int> failed = co_await coro::offload(fails);
    EXPECT_EQ(failed.error(), std::errc::io_error);
    co_return done;
  };
  ThreadPool pool;
  EXPECT_EQ(coro::run(*loop_, works(pthread_self(), &pool)), 21);
}

TEST_F(CoroProcess, FullPoolIsReported) {
  const auto works = [](ThreadPool* pool) -> Task<Result<void>> {
    co_await coro::or_return(coro::offload([] { ADD_FAILURE() << "done"; }, *pool));
    co_return Result<void>();
  };
  std::latch gate(1);
  ThreadPool pool({.max_threads = 1, .max_queued = 1});
  std::vector<Result<Offloading>> busy;
  do {
    busy.push_back(spate::offload(*loop_, [&] { gate.wait(); }, [] {}, pool));
  } while (busy.back());
  const Result<void> result = coro::run(*loop_, works(&pool));
  gate.count_down();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), Error::queue_full);
}

TEST_F(CoroProcess, CancelledWorkDoesNotResumeItsTask) {
  const auto works = []() -> Task<void> {
    co_await coro::offload([] { return 1; });
    ADD_FAILURE() << "it went on";
  };
  Scope scope(*loop_);
  scope.spawn(works());
  scope.cancel();
  EXPECT_FALSE(loop_->run());
}

}  // namespace
}  // namespace spate::testing
