#include "http2/session_engine.h"

#include <cerrno>
#include <new>
#include <system_error>

#include "http2/session.h"
#include "spate/error.h"

namespace spate::http {

namespace {

std::unique_ptr<Http2Session> make(Http2Events& events, Session::Side side,
                                   const Http2Options& options, std::size_t max_head) {
  std::unique_ptr<Session> session(new (std::nothrow) Session(events, side, options));
  if (session == nullptr || !session->open(max_head)) return nullptr;
  return session;
}

}  // namespace

std::unique_ptr<Http2Session> SessionEngine::make_server(Http2Events& events,
                                                         std::size_t max_head) const {
  return make(events, Session::Side::server, options_, max_head);
}

std::unique_ptr<Http2Session> SessionEngine::make_client(Http2Events& events,
                                                         std::size_t max_head) const {
  return make(events, Session::Side::client, options_, max_head);
}

Result<Http2> Http2::create(const Http2Options& options) {
  constexpr std::uint32_t kMostStreams = 10'000;
  constexpr std::uint32_t kLeastWindow = 1024;
  constexpr std::uint32_t kMostWindow = 16 * 1024 * 1024;
  if (options.max_streams == 0 || options.max_streams > kMostStreams ||
      options.stream_window < kLeastWindow || options.stream_window > kMostWindow)
    return std::unexpected(std::error_code(EINVAL, std::system_category()));
  return Http2(std::make_shared<const SessionEngine>(options));
}

}  // namespace spate::http
