// awaitable, co_spawn, its experimental && and channel. A turn is post(). Neither locks nor the
// type-erased executor.
#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/channel.hpp>

#include "workloads/coro/coro.h"

namespace {

using namespace asio::experimental::awaitable_operators;
using Executor = asio::io_context::executor_type;
using Count = std::uint64_t;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Values = asio::experimental::basic_channel<Executor, asio::experimental::channel_traits<>,
                                                 void(std::error_code, Count)>;
template <class T>
using Awaitable = asio::awaitable<T, Executor>;

constexpr asio::use_awaitable_t<Executor> kAwait;

Awaitable<Count> one() { co_return 1; }
Awaitable<void> one_turn(Executor executor, Count* done) {
  co_await asio::post(executor, kAwait);
  ++*done;
}

Awaitable<void> await_children(Executor, Count n, Count* done) {
  for (Count i = 0; i < n; ++i) {
    const Count given = co_await one();
    *done += given;
  }
}
Awaitable<void> spawn_and_join(Executor executor, Count n, Count* done) {
  for (Count i = 0; i < n; ++i) co_await asio::co_spawn(executor, one_turn(executor, done), kAwait);
}
Awaitable<void> sleep_often(Executor executor, Count n, Count* done) {
  Timer timer(executor);
  for (; *done < n; ++*done) {
    timer.expires_after(std::chrono::nanoseconds(0));
    co_await timer.async_wait(kAwait);
  }
}
Awaitable<void> await_pairs(Executor executor, Count n, Count* done) {
  for (Count i = 0; i < n; ++i) co_await (one_turn(executor, done) && one_turn(executor, done));
}
Awaitable<void> send(Values* values, Count n) {
  for (Count i = 0; i < n; ++i) co_await values->async_send(std::error_code(), 1, kAwait);
}
Awaitable<void> pass(Executor executor, Count n, Count* done) {
  Values values(executor, kRoom);
  asio::co_spawn(executor, send(&values, n), asio::detached);
  for (Count i = 0; i < n; ++i) {
    const Count value = co_await values.async_receive(kAwait);
    *done += value;
  }
}

class Contestant {
 public:
  static void version() { bench_version(std::to_string(ASIO_VERSION).c_str(), nullptr); }

  Count children(Count n) { return run(await_children, n); }
  Count spawns(Count n) { return run(spawn_and_join, n); }
  Count sleeps(Count n) { return run(sleep_often, n); }
  Count pairs(Count n) { return run(await_pairs, n); }
  Count passes(Count n) { return run(pass, n); }

 private:
  Count run(Awaitable<void> (*work)(Executor, Count, Count*), Count n) {
    Count done = 0;
    asio::co_spawn(io_, work(io_.get_executor(), n, &done), asio::detached);
    io_.restart();
    io_.run();
    return done;
  }

  asio::io_context io_{ASIO_CONCURRENCY_HINT_UNSAFE};
};

}  // namespace

int main(int argc, char** argv) { return bench_coro<Contestant>(argc, argv); }
