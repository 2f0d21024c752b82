// run(): runs a loop until a task is done. For main() and tests.
//
//   coro::Task<Result<void>> greet(std::string host) {
//     coro::Stream peer(co_await coro::or_return(coro::connect(host, 7000)));
//     co_await coro::or_return(peer.send("hello\n"));
//     co_return {};
//   }
//   int main() {
//     auto loop = must(Loop::create());
//     must(coro::run(*loop, greet("localhost")));  // Or says why not, and ends the program.
//   }
//
// Threads: whichever may run the loop.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "spate/coro/scope.h"

namespace spate::coro {

// Of one run(): `loop` once it runs, and is to be stopped.
template <class T>
Task<void> keep_result(Task<T> task, std::optional<T>* result, Loop** loop) {
  T value = co_await std::move(task);
  result->emplace(std::move(value));
  if (*loop != nullptr) (*loop)->stop();
}
inline Task<void> stop_after(Task<void> task, Loop** loop) {
  co_await std::move(task);
  if (*loop != nullptr) (*loop)->stop();
}

// What the task gives. If the loop returns before that, because of Loop::stop() or because nothing
// is left that it could wait for, the task is cancelled: a Result is ECANCELED then, any other
// result but void is asserted. So it is without memory to begin: ENOMEM.
template <class T>
T run(Loop& loop, Task<T> task) {
  Scope scope(loop);
  Loop* running = nullptr;
  const auto finish = [&] {
    if (scope.empty()) return;
    running = &loop;
    loop.run();
  };
  if constexpr (std::is_void_v<T>) {
    scope.spawn(stop_after(std::move(task), &running));
    finish();
  } else {
    std::optional<T> result;
    Task<void> all = keep_result(std::move(task), &result, &running);
    const bool has_memory(all);
    scope.spawn(std::move(all));
    finish();
    if constexpr (kIsResult<T>) {
      if (!result) {
        return std::unexpected(std::make_error_code(has_memory ? std::errc::operation_canceled
                                                               : std::errc::not_enough_memory));
      }
    }
    SPATE_ASSERT(result.has_value(), "the loop has nothing to wait for, and the task is not done");
    return std::move(*result);
  }
}

}  // namespace spate::coro
