// Stream::connect().
#include <cerrno>

#include "net/connect/connect_socket.h"
#include "net/connect/connecting_end.h"
#include "net/stream/connection.h"
#include "net/stream/hub.h"
#include "spate/net/stream.h"

namespace spate {

namespace {

template <class Attempt>
std::error_code connect_stream(Stream& stream, Loop& loop, StreamHandler& handler,
                               Attempt attempt) {
  Hub* hub = Hub::of(loop);
  ConnectingEnd* end = hub == nullptr ? nullptr : ConnectingEnd::make(*hub);
  if (end == nullptr) return sys::error_code(-ENOMEM);
  stream = Connection::stream_of(&end->connection());
  stream.start(handler);
  end->keep(attempt(end->on_socket()));
  return {};
}

}  // namespace

std::error_code Stream::connect(Loop& loop, std::string_view host, std::uint16_t port,
                                StreamHandler& handler, const ConnectOptions& options) {
  return connect_stream(*this, loop, handler, [&](OnSocket on_socket) {
    return connect_socket(loop, host, port, std::move(on_socket), options);
  });
}

std::error_code Stream::connect(Loop& loop, const Address& address, StreamHandler& handler,
                                const ConnectOptions& options) {
  return connect_stream(*this, loop, handler, [&](OnSocket on_socket) {
    return connect_socket(loop, {address}, std::move(on_socket), options);
  });
}

std::error_code Stream::connect(Loop& loop, std::string_view host, std::uint16_t port,
                                StreamHandler& handler) {
  return connect(loop, host, port, handler, ConnectOptions{});
}

std::error_code Stream::connect(Loop& loop, const Address& address, StreamHandler& handler) {
  return connect(loop, address, handler, ConnectOptions{});
}

}  // namespace spate
