// Stream::connect() without TLS. The TLS variant is in net/secure.
#include <cerrno>
#include <vector>

#include "net/connect/connecting_end.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"

namespace spate {

std::error_code Stream::connect(Loop& loop, std::string_view host, std::uint16_t port,
                                StreamHandler& handler, const ConnectOptions& options) {
  ConnectingEnd* end = ConnectingEnd::begin(*this, loop, handler);
  if (end == nullptr) return sys::error_code(-ENOMEM);
  const auto tell = [end](Result<Stream> made) { end->on_result(std::move(made)); };
  end->keep(spate::connect(loop, host, port, tell, options));
  return {};
}

std::error_code Stream::connect(Loop& loop, const Address& address, StreamHandler& handler,
                                const ConnectOptions& options) {
  ConnectingEnd* end = ConnectingEnd::begin(*this, loop, handler);
  if (end == nullptr) return sys::error_code(-ENOMEM);
  const auto tell = [end](Result<Stream> made) { end->on_result(std::move(made)); };
  end->keep(spate::connect(loop, address, tell, options));
  return {};
}

std::error_code Stream::connect(Loop& loop, std::string_view host, std::uint16_t port,
                                StreamHandler& handler) {
  return connect(loop, host, port, handler, ConnectOptions{});
}

std::error_code Stream::connect(Loop& loop, const Address& address, StreamHandler& handler) {
  return connect(loop, address, handler, ConnectOptions{});
}

}  // namespace spate
