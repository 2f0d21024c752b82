// request(): the awaitable form of RequestPipe::request() (request_pipe.h).
//
//   const Result<std::string> value = co_await coro::request(redis, "GET key\r\n");
//
// Cancelling the wait cancels the request, as PipeRequest::cancel(). Destroying the RequestPipe
// leaves the coroutine waiting: destroy its Scope first, or call close().
// Threads: the loop's thread only.
#pragma once

#include <string>
#include <string_view>

#include "spate/coro/callback_awaiter.h"
#include "spate/net/request_pipe.h"

namespace spate::coro {

// co_await: returns a copy of the response. The pipe and the bytes must live until the request is
// made, which co_await does at once. Errors: those of RequestPipe::request(), and of its callback.
inline auto request(AnyRequestPipe& pipe, Bytes bytes, const PipeRequestOptions& options = {}) {
  return CallbackAwaiter<Result<std::string>>::of(
      [&pipe, bytes, options](Loop&, auto reply) -> Result<PipeRequest> {
        PipeRequest handle;
        PipeRequestOptions with_handle = options;
        with_handle.handle = &handle;
        const std::error_code error = pipe.request(
            bytes,
            [reply](Result<Bytes> response) {
              if (response) return reply(std::string(text_of(*response)));
              reply(std::unexpected(response.error()));
            },
            with_handle);
        if (error) return std::unexpected(error);
        return handle;
      });
}
inline auto request(AnyRequestPipe& pipe, std::string_view text,
                    const PipeRequestOptions& options = {}) {
  return request(pipe, bytes_of(text), options);
}

}  // namespace spate::coro
