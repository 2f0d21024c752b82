// Tasks, a Scope, when_all, a Channel. A turn is next_turn(), which is a timer.
#include <spate/coro/channel.h>
#include <spate/coro/run.h>
#include <spate/coro/time.h>
#include <spate/coro/when.h>

#include "harness/spate_loop.h"
#include "workloads/coro/coro.h"

namespace {

using namespace spate;
using coro::Task;
using Count = std::uint64_t;
using Values = coro::Channel<Count>;

Task<Count> one() { co_return 1; }
Task<void> one_turn(Count* done) {
  co_await coro::next_turn();
  ++*done;
}

Task<Count> await_children(Count n) {
  Count done = 0;
  for (Count i = 0; i < n; ++i) {
    const Count given = co_await one();
    done += given;
  }
  co_return done;
}
Task<Count> spawn_and_join(Loop* loop, Count n) {
  Count done = 0;
  coro::Scope scope(*loop);
  for (Count i = 0; i < n; ++i) {
    scope.spawn(one_turn(&done));
    co_await scope.join();
  }
  co_return done;
}
Task<Count> sleep_often(Count n) {
  Count done = 0;
  for (; done < n; ++done) co_await coro::sleep(Nanos{0});
  co_return done;
}
Task<Count> await_pairs(Count n) {
  Count done = 0;
  for (Count i = 0; i < n; ++i) co_await coro::when_all(one_turn(&done), one_turn(&done));
  co_return done;
}
Task<void> send(Values* values, Count n) {
  for (Count i = 0; i < n; ++i) co_await values->send(1);
  values->close();
}
Task<Count> receive(Values* values) {
  Count done = 0;
  for (;;) {
    const std::optional<Count> value = co_await values->receive();
    if (!value) co_return done;
    done += *value;
  }
}

class Contestant {
 public:
  static void version() { bench_version("0.1.0", nullptr); }

  Count children(Count n) { return coro::run(*loop_, await_children(n)); }
  Count spawns(Count n) { return coro::run(*loop_, spawn_and_join(loop_.get(), n)); }
  Count sleeps(Count n) { return coro::run(*loop_, sleep_often(n)); }
  Count pairs(Count n) { return coro::run(*loop_, await_pairs(n)); }
  Count passes(Count n) {
    Values values(kRoom);
    coro::Scope sender(*loop_);
    sender.spawn(send(&values, n));
    return coro::run(*loop_, receive(&values));
  }

 private:
  std::unique_ptr<Loop> loop_ = must(Loop::create());
};

}  // namespace

int main(int argc, char** argv) { return bench_coro<Contestant>(argc, argv); }
