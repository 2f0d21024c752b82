// handler(): makes a server's handler of a coroutine. Needs spate::http.
//
//   coro::Scope scope(*loop);
//   coro::Task<void> show(http::Exchange exchange) {
//     const auto user = co_await find_user(exchange.request().param("id"));
//     exchange.respond(to_json(user));
//   }
//   ...
//   router.get("/users/:id", coro::handler(scope, show));
//
// Exceptions: one that leaves the task is passed to ServerOptions::on_exception with the request.
// The client gets 500, or a reset if the response has begun, and the program continues. A task that
// the program spawns itself (Scope::spawn()) ends the program instead.
// Ownership: the handler owns the function, which is kept until the last of its tasks has ended.
// The Scope owns the tasks, and must outlive the server.
// Threads: the loop's thread only.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/coro/task.h"
#include "spate/http/exchange.h"
#include "spate/http/exchange_keeper.h"
#include "spate/http/server.h"

namespace spate::coro {

// The task of one request. The Exchange and the locals of the function's own task are destroyed
// before the exception is reported.
template <class Outcome, class Function>
Task<Outcome> run_handler(std::shared_ptr<Function> function, http::ExchangeKeeper keeper,
                          http::Exchange exchange) {
#ifdef __cpp_exceptions
  try {
    if constexpr (std::is_void_v<Outcome>) {
      co_await (*function)(std::move(exchange));
      co_return;
    } else {
      Outcome outcome = co_await (*function)(std::move(exchange));
      co_return outcome;
    }
  } catch (...) {
    keeper.fail();
  }
  if constexpr (!std::is_void_v<Outcome>) co_return Outcome();
#else
  static_cast<void>(keeper);
  if constexpr (std::is_void_v<Outcome>) {
    co_await (*function)(std::move(exchange));
  } else {
    Outcome outcome = co_await (*function)(std::move(exchange));
    co_return outcome;
  }
#endif
}

// `function(http::Exchange)` returns a Task<void> or a Task<Result<void>>, whose error is passed to
// Scope::on_error(). If the Scope does not accept the task, the client gets 500.
template <class Function>
http::OnRequest handler(Scope& scope, Function function) {
  using Called = decltype(function(http::Exchange()));
  using Outcome = std::conditional_t<std::is_same_v<Called, Task<void>>, void, Result<void>>;
  static_assert(std::is_same_v<Called, Task<Outcome>>,
                "the function returns a Task<void> or a Task<Result<void>>");
  return
      [&scope, shared = std::make_shared<Function>(std::move(function))](http::Exchange exchange) {
        http::ExchangeKeeper keeper(exchange);
        scope.spawn(run_handler<Outcome>(shared, std::move(keeper), std::move(exchange)));
      };
}

}  // namespace spate::coro
