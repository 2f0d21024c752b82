// connect(), resolve(): those of net (connect.h, resolver.h), to be awaited.
//
//   Result<spate::Stream> peer = co_await coro::connect("example.org", 80, {.timeout = 5s});
//   if (!peer) co_return;
//   coro::Stream stream(*std::move(peer));
//
// An attempt, or a query, that is given up is cancelled, and its sockets are closed. What is passed
// by reference has to last until the end of the statement that awaits.
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/coro/answer.h"
#include "spate/net/connect.h"
#include "spate/net/resolver.h"

namespace spate::coro {

// co_await: a Stream. Errors: those of spate::connect().
inline auto connect(const Address& address, const ConnectOptions& options = {}) {
  return Answer<Result<spate::Stream>>::of([&address, options](Loop& loop, auto reply) {
    return spate::connect(loop, address, reply, options);
  });
}
// Several addresses of one peer, raced in the order given.
inline auto connect(std::vector<Address> addresses, const ConnectOptions& options = {}) {
  return Answer<Result<spate::Stream>>::of(
      [addresses = std::move(addresses), options](Loop& loop, auto reply) mutable {
        return spate::connect(loop, std::move(addresses), reply, options);
      });
}
// A host by name, or an IP address as text.
inline auto connect(std::string_view host, std::uint16_t port, const ConnectOptions& options = {}) {
  return Answer<Result<spate::Stream>>::of([host, port, options](Loop& loop, auto reply) {
    return spate::connect(loop, host, port, reply, options);
  });
}

// co_await: the addresses of `host`, at least one, best first. Errors: those of spate::resolve().
inline auto resolve(std::string_view host, std::uint16_t port, const ResolveOptions& options = {}) {
  return Answer<Result<std::vector<Address>>>::of([host, port, options](Loop& loop, auto reply) {
    return spate::resolve(loop, host, port, reply, options);
  });
}

}  // namespace spate::coro
