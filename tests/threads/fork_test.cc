// A process forks while its other threads hold locks: the child must not wait for those.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include "spate/async.h"
#include "spate/loop.h"
#include "spate/signal.h"

namespace spate {
namespace {

constexpr unsigned kChildPatience = 20;  // Seconds, after which a hanging child is ended.

// Returns the exit code of a child that runs `body`, or minus the signal that ended it.
template <class Body>
int fork_and(Body body) {
  const int pid = ::fork();
  if (pid == 0) {
    ::alarm(kChildPatience);
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Repeats an action on another thread until it is destroyed.
template <class Body>
class Meanwhile {
 public:
  explicit Meanwhile(Body body) : body_(body), thread_([this] { run(); }) {
    while (rounds_.load() == 0) std::this_thread::yield();
  }
  ~Meanwhile() {
    done_.store(true);
    thread_.join();
  }

 private:
  void run() {
    for (; !done_.load(); rounds_.fetch_add(1)) body_();
  }

  Body body_;
  std::atomic<bool> done_{false};
  std::atomic<int> rounds_{0};
  std::thread thread_;
};

TEST(ForkWithThreads, ChildMayStartAndStopSignals) {
  const std::unique_ptr<Loop> busy = *Loop::create();
  const std::unique_ptr<Loop> loop = *Loop::create();
  Signal theirs(*busy, [] {});
  Signal ours(*loop, [] {});
  ASSERT_FALSE(ours.start(SIGUSR1));
  const Meanwhile others([&] {
    (void)theirs.start(SIGUSR2);
    theirs.stop();
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(fork_and([&] {
                ours.stop();
                return ours.start(SIGUSR2) ? 1 : 0;
              }),
              0);
  }
}

TEST(ForkWithThreads, ChildMayStopSignalThatParentReceives) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  Signal signal(*loop, [] {});
  ASSERT_FALSE(signal.start(SIGUSR1));
  const Meanwhile others([] { ::pthread_kill(::pthread_self(), SIGUSR1); });
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(fork_and([&] {
                signal.stop();
                return 0;
              }),
              0);
  }
}

TEST(ForkWithThreads, ChildReceivesItsOwnSends) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  int calls = 0;
  Async async(*loop, [&calls] { ++calls; });
  ASSERT_TRUE(async.start());
  const Meanwhile others([&] { async.send(); });
  for (int i = 0; i < 200; ++i) {
    loop->run(Run::no_wait);
    EXPECT_EQ(fork_and([&] {
                if (loop->after_fork() || loop->run(Run::no_wait)) return 1;
                calls = 0;
                async.send();
                if (loop->run(Run::no_wait)) return 2;
                return calls == 1 ? 0 : 3;
              }),
              0);
  }
}

TEST(ForkWithThreads, ChildReceivesItsOwnPosts) {
  const std::unique_ptr<Loop> loop = *Loop::create();
  const Meanwhile others([&] { loop->post([] {}); });
  for (int i = 0; i < 100; ++i) {
    loop->run(Run::no_wait);
    EXPECT_EQ(fork_and([&] {
                if (loop->after_fork()) return 1;
                bool called = false;
                loop->post([&called] { called = true; });
                for (int turns = 0; turns < 1000 && !called; ++turns) loop->run(Run::no_wait);
                return called ? 0 : 2;
              }),
              0);
  }
}

}  // namespace
}  // namespace spate
