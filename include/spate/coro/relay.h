// relay(), copy(): awaitable forms of spate::relay() and spate::copy() (net/relay.h).
//
//   const RelayResult moved = co_await coro::relay(client.release(), server.release());
//
// They forward the rest of a connection: bytes move from one Stream to the other without resuming a
// coroutine. Cancelling the wait closes both, as destroying a Stream does.
// Threads: the loop's thread only.
#pragma once

#include <utility>

#include "spate/coro/callback_awaiter.h"
#include "spate/net/relay.h"

namespace spate::coro {

// co_await: returns the result, when both are closed.
inline auto relay(spate::Stream first, spate::Stream second, const RelayOptions& options = {}) {
  return CallbackAwaiter<RelayResult>::of(
      [first = std::move(first), second = std::move(second), options](Loop&, auto reply) mutable {
        return spate::relay(std::move(first), std::move(second), reply, options);
      });
}
// As above, in one direction.
inline auto copy(spate::Stream from, spate::Stream to, const RelayOptions& options = {}) {
  return CallbackAwaiter<RelayResult>::of(
      [from = std::move(from), to = std::move(to), options](Loop&, auto reply) mutable {
        return spate::copy(std::move(from), std::move(to), reply, options);
      });
}

}  // namespace spate::coro
