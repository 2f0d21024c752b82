// accept_tls(), start_tls(), connect(): awaitable forms of the functions of net/tls.h.
//
//   coro::Task<void> session(spate::Stream accepted, const TlsContext* context) {
//     TlsResult<spate::Stream> secured = co_await coro::accept_tls(std::move(accepted), *context);
//     if (!secured) co_return;  // secured.error() has the reason.
//     coro::Stream stream(*std::move(secured));
//
// Cancelling the wait cancels the handshake, and resets its connection. Arguments passed by
// reference must live until the end of the co_await statement. To switch to TLS on a connection in
// use (STARTTLS), call coro::Stream::release() first.
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/coro/callback_awaiter.h"
#include "spate/net/connect.h"
#include "spate/net/tls.h"

namespace spate::coro {

// Reports ENOMEM for a handshake that could not begin, since spate::accept_tls() does not call back
// then.
template <class Reply>
Connecting begun_tls(Connecting handshake, const Reply& reply) {
  if (!handshake.is_pending()) {
    reply(std::unexpected(TlsFailure{std::make_error_code(std::errc::not_enough_memory), {}}));
  }
  return handshake;
}

// co_await: performs the handshake as a server, and returns the secured Stream. `plain` must not be
// empty. Errors: those of spate::accept_tls().
inline auto accept_tls(spate::Stream plain, const TlsContext& context) {
  return CallbackAwaiter<TlsResult<spate::Stream>>::of(
      [plain = std::move(plain), &context](Loop&, auto reply) mutable {
        return begun_tls(spate::accept_tls(std::move(plain), context, reply), reply);
      });
}
// co_await: performs the handshake as the client of `host`. Errors: those of spate::start_tls().
inline auto start_tls(spate::Stream plain, const TlsContext& context, std::string_view host) {
  return CallbackAwaiter<TlsResult<spate::Stream>>::of(
      [plain = std::move(plain), &context, host](Loop&, auto reply) mutable {
        return begun_tls(spate::start_tls(std::move(plain), context, host, reply), reply);
      });
}
// co_await: connects to `host`, performs the handshake, and returns the secured Stream. Errors:
// those of connect() and start_tls().
inline auto connect(std::string_view host, std::uint16_t port, const TlsContext& context,
                    const ConnectOptions& options = {}) {
  return CallbackAwaiter<TlsResult<spate::Stream>>::of(
      [host, port, &context, options](Loop& loop, auto reply) {
        return begun_tls(spate::connect(loop, host, port, context, reply, options), reply);
      });
}

}  // namespace spate::coro
