// offload(): runs blocking work on a thread pool, and returns its result to the coroutine.
//
//   auto work = [path] { return read_file(path); };  // With a name: coroutine-compilers.md.
//   const Result<std::string> text = co_await coro::offload(std::move(work));
//
// As spate::offload() (offload.h). If the wait is cancelled, work that has not begun is not done;
// otherwise it runs to its end, and its result is destroyed. So objects it refers to must outlive
// the work, not only the wait: capture by value.
// Threads: awaited on the loop's thread. The work is called and destroyed on a thread of the pool.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "spate/coro/callback_awaiter.h"
#include "spate/offload.h"

namespace spate::coro {

// co_await: returns the result of `work()`, as a Result. Errors: those of spate::offload(). With
// g++ 12, work that captures by value must be a named variable that is moved
// (docs/guide/coroutine-compilers.md).
template <class Work>
  requires std::invocable<Work&>
auto offload(Work work, ThreadPool& pool = ThreadPool::shared()) {
  using Outcome = AsResult<std::decay_t<std::invoke_result_t<Work&>>>;
  return CallbackAwaiter<Outcome>::of(
      [work = std::move(work), &pool](Loop& loop, auto reply) mutable {
        return spate::offload(loop, std::move(work), reply, pool);
      });
}

}  // namespace spate::coro
