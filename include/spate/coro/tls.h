// accept_tls(), start_tls(), connect(): those of net (tls.h), to be awaited.
//
//   coro::Task<void> session(spate::Stream accepted, const TlsContext* context) {
//     TlsResult<spate::Stream> secured = co_await coro::accept_tls(std::move(accepted), *context);
//     if (!secured) co_return;  // secured.error() says why.
//     coro::Stream stream(*std::move(secured));
//
// A handshake that is given up is cancelled, and its connection reset. What is passed by reference
// has to last until the end of the statement that awaits. To change to TLS in the middle of a
// conversation (STARTTLS), let coro::Stream::release() give the connection back first.
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/coro/answer.h"
#include "spate/net/connect.h"
#include "spate/net/tls.h"

namespace spate::coro {

// A handshake that could not even begin has its answer, too.
template <class Reply>
Connecting begun_tls(Connecting handshake, const Reply& reply) {
  if (!handshake.is_pending()) {
    reply(std::unexpected(TlsFailure{std::make_error_code(std::errc::not_enough_memory), {}}));
  }
  return handshake;
}

// co_await: the Stream, secured. `plain` is not empty. Errors: those of spate::accept_tls().
inline auto accept_tls(spate::Stream plain, const TlsContext& context) {
  return Answer<TlsResult<spate::Stream>>::of(
      [plain = std::move(plain), &context](Loop&, auto reply) mutable {
        return begun_tls(spate::accept_tls(std::move(plain), context, reply), reply);
      });
}
// The same as the client of `host`. Errors: those of spate::start_tls().
inline auto start_tls(spate::Stream plain, const TlsContext& context, std::string_view host) {
  return Answer<TlsResult<spate::Stream>>::of(
      [plain = std::move(plain), &context, host](Loop&, auto reply) mutable {
        return begun_tls(spate::start_tls(std::move(plain), context, host, reply), reply);
      });
}
// co_await: a Stream to `host` that is secured. Errors: those of both.
inline auto connect(std::string_view host, std::uint16_t port, const TlsContext& context,
                    const ConnectOptions& options = {}) {
  return Answer<TlsResult<spate::Stream>>::of(
      [host, port, &context, options](Loop& loop, auto reply) {
        return begun_tls(spate::connect(loop, host, port, context, reply, options), reply);
      });
}

}  // namespace spate::coro
