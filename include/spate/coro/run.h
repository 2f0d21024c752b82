// run(): runs a loop until a task is done. For main() and tests.
//
//   coro::Task<Result<void>> greet(std::string host) {
//     coro::Stream peer(co_await coro::or_return(coro::connect(host, 7000)));
//     co_await coro::or_return(peer.send("hello\n"));
//     co_return {};
//   }
//   int main() {
//     auto loop = must(Loop::create());
//     must(coro::run(*loop, greet("localhost")));  // Prints an error, if any, and exits.
//   }
//
// Threads: any thread that may run the loop.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/delegate.h"
#include "spate/hooks.h"
#include "spate/loop.h"

namespace spate::coro {

// Ends the loop's run() that waits for a task. A callback may nest another run(), in which the task
// ends. RunEnd does not stop that one; it stops ours after it.
class RunEnd {
 public:
  explicit RunEnd(Loop& loop) : loop_(loop), retry_(loop, bind<&RunEnd::stop_ours>(this)) {}
  ~RunEnd() {
    if (retry_.is_active()) loop_.ref();
  }
  RunEnd(const RunEnd&) = delete;
  RunEnd& operator=(const RunEnd&) = delete;

  void run() {
    depth_ = loop_.depth() + 1;
    loop_.run();
  }
  // Called when the task has ended, possibly before run().
  void task_ended() {
    if (depth_ == 0) return;
    if (loop_.depth() == depth_) return loop_.stop();
    if (!retry_.start()) return loop_.stop_all();  // Memory ran out.
    loop_.unref();
  }

 private:
  void stop_ours() {
    if (loop_.depth() == depth_) loop_.stop();
  }

  Loop& loop_;
  Prepare retry_;  // Checks in each turn while other runs are nested in ours.
  int depth_ = 0;
};

template <class T>
Task<void> keep_result(Task<T> task, std::optional<T>* result, RunEnd* end) {
  T value = co_await std::move(task);
  result->emplace(std::move(value));
  end->task_ended();
}
inline Task<void> stop_after(Task<void> task, RunEnd* end) {
  co_await std::move(task);
  end->task_ended();
}

// Returns the result of the task. The task is cancelled if the loop returns earlier, because of
// Loop::stop() or because nothing is left to wait for. The result is then ECANCELED if it is a
// Result; any other type except void asserts. If memory runs out at the beginning, the result is
// ENOMEM, likewise.
template <class T>
T run(Loop& loop, Task<T> task) {
  RunEnd end(loop);
  Scope scope(loop);
  const auto finish = [&] {
    if (!scope.empty()) end.run();
  };
  if constexpr (std::is_void_v<T>) {
    scope.spawn(stop_after(std::move(task), &end));
    finish();
  } else {
    std::optional<T> result;
    Task<void> all = keep_result(std::move(task), &result, &end);
    const bool has_memory(all);
    scope.spawn(std::move(all));
    finish();
    if constexpr (kIsResult<T>) {
      if (!result) {
        return std::unexpected(std::make_error_code(has_memory ? std::errc::operation_canceled
                                                               : std::errc::not_enough_memory));
      }
    }
    SPATE_ASSERT(result.has_value(), "nothing keeps the loop alive, and the task is not done");
    return std::move(*result);
  }
}

}  // namespace spate::coro
