// relay(), copy(): those of net (relay.h), to be awaited.
//
//   const RelayResult moved = co_await coro::relay(client.release(), server.release());
//
// For what is left when all has been said: bytes go from one Stream to the other without waking
// anybody. A wait that is given up closes both, as destroying a Stream does.
// Threads: the loop's thread only.
#pragma once

#include <utility>

#include "spate/coro/answer.h"
#include "spate/net/relay.h"

namespace spate::coro {

// co_await: what has come of it, when both are closed.
inline auto relay(spate::Stream first, spate::Stream second, const RelayOptions& options = {}) {
  return Answer<RelayResult>::of(
      [first = std::move(first), second = std::move(second), options](Loop&, auto reply) mutable {
        return spate::relay(std::move(first), std::move(second), reply, options);
      });
}
// The same in one direction.
inline auto copy(spate::Stream from, spate::Stream to, const RelayOptions& options = {}) {
  return Answer<RelayResult>::of(
      [from = std::move(from), to = std::move(to), options](Loop&, auto reply) mutable {
        return spate::copy(std::move(from), std::move(to), reply, options);
      });
}

}  // namespace spate::coro
