// offload(): blocking work on a thread pool; its result comes back to the coroutine.
//
//   auto work = [path] { return read_file(path); };  // With a name: coroutine-compilers.md.
//   const Result<std::string> text = co_await coro::offload(std::move(work));
//
// As spate::offload() (offload.h): work that is given up before it has begun is not done; else it
// runs to its end, and its result is destroyed. So what it refers to has to last until then, not
// only until the wait is over: capture by value.
// Threads: awaited on the loop's thread. The work is called and destroyed on one of the pool's.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "spate/coro/answer.h"
#include "spate/offload.h"

namespace spate::coro {

// co_await: what `work()` gives, as a Result. Errors: those of spate::offload(). With g++ 12, work
// that captures by value needs a name first, to be moved from (docs/guide/coroutine-compilers.md).
template <class Work>
  requires std::invocable<Work&>
auto offload(Work work, ThreadPool& pool = ThreadPool::shared()) {
  using Outcome = AsResult<std::decay_t<std::invoke_result_t<Work&>>>;
  return Answer<Outcome>::of([work = std::move(work), &pool](Loop& loop, auto reply) mutable {
    return spate::offload(loop, std::move(work), reply, pool);
  });
}

}  // namespace spate::coro
