// An exception propagates from a task to its awaiter; out of a spawned task it ends the program.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

#include "spate/coro/generator.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"

using namespace spate;
using namespace std::chrono_literals;

namespace {

int destroyed = 0;
struct Local {
  ~Local() { ++destroyed; }
};

coro::Task<int> throws(Nanos after) {
  const Local local;
  if (after > Nanos{0}) co_await coro::sleep(after);
  throw std::runtime_error("thrown");
}

coro::Task<bool> catches(coro::Task<int> task) {
  bool is_caught = false;
  try {
    co_await std::move(task);
  } catch (const std::runtime_error&) {
    is_caught = true;
  }
  co_await coro::next_turn();
  co_return is_caught;
}

// Throws after its only value; the generator is finished then.
coro::Generator<int> throws_behind_one() {
  const Local local;
  co_yield 1;
  throw std::runtime_error("thrown");
}
coro::Task<bool> asks(coro::Generator<int> values) {
  int caught = 0;
  for (int i = 0; i < 3; ++i) {
    std::optional<int> value;
    try {
      value = co_await values.next();
    } catch (const std::runtime_error&) {
      ++caught;
    }
    if (value.has_value() != (i == 0)) co_return false;
  }
  co_return caught == 1 && !values;
}

coro::Task<void> hands_on(coro::Task<int> task) { co_await std::move(task); }

bool ends_the_program(Loop& loop) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::close(STDERR_FILENO);
    coro::run(loop, hands_on(throws(Nanos{0})));
    ::_exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGABRT;
}

}  // namespace

int main() {
  const auto loop = must(Loop::create());
  bool is_right = coro::run(*loop, catches(throws(Nanos{0})));
  is_right = coro::run(*loop, catches(throws(1ms))) && is_right;
  is_right = coro::run(*loop, asks(throws_behind_one())) && is_right;
  is_right = destroyed == 3 && is_right;
  is_right = ends_the_program(*loop) && is_right;
  if (!is_right) std::fputs("an exception went elsewhere\n", stderr);
  return is_right ? 0 : 1;
}
