// connect(), resolve(): awaitable forms of spate::connect() and spate::resolve() (connect.h,
// resolver.h).
//
//   Result<spate::Stream> peer = co_await coro::connect("example.org", 80, {.timeout = 5s});
//   if (!peer) co_return;
//   coro::Stream stream(*std::move(peer));
//
// Cancelling the wait cancels the attempt or query, and closes its sockets. Arguments passed by
// reference must live until the end of the co_await statement.
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/coro/callback_awaiter.h"
#include "spate/net/connect.h"
#include "spate/net/resolver.h"

namespace spate::coro {

// co_await: returns a connected Stream. Errors: those of spate::connect().
inline auto connect(const Address& address, const ConnectOptions& options = {}) {
  return CallbackAwaiter<Result<spate::Stream>>::of([&address, options](Loop& loop, auto reply) {
    return spate::connect(loop, address, reply, options);
  });
}
// As above, with several addresses of one peer, raced in the order given.
inline auto connect(std::vector<Address> addresses, const ConnectOptions& options = {}) {
  return CallbackAwaiter<Result<spate::Stream>>::of(
      [addresses = std::move(addresses), options](Loop& loop, auto reply) mutable {
        return spate::connect(loop, std::move(addresses), reply, options);
      });
}
// As above, with a host by name, or an IP address as text.
inline auto connect(std::string_view host, std::uint16_t port, const ConnectOptions& options = {}) {
  return CallbackAwaiter<Result<spate::Stream>>::of([host, port, options](Loop& loop, auto reply) {
    return spate::connect(loop, host, port, reply, options);
  });
}

// co_await: returns the addresses of `host`, at least one, best first. Errors: those of
// spate::resolve().
inline auto resolve(std::string_view host, std::uint16_t port, const ResolveOptions& options = {}) {
  return CallbackAwaiter<Result<std::vector<Address>>>::of(
      [host, port, options](Loop& loop, auto reply) {
        return spate::resolve(loop, host, port, reply, options);
      });
}

}  // namespace spate::coro
