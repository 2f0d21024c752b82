#include "spate/net/connect.h"

#include <cerrno>

#include "core/user_code.h"
#include "net/connect/connect_race.h"
#include "net/connect/connect_socket.h"
#include "net/connect/named_connect.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"

namespace spate {

namespace {

Result<Stream> stream_of(Loop& loop, Result<sys::Descriptor> socket) {
  if (!socket) return std::unexpected(socket.error());
  LoopStreams* loop_state = LoopStreams::of(loop);
  Connection* connection =
      loop_state == nullptr ? nullptr : Connection::adopt(loop_state->sockets(), *socket);
  if (connection == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return Connection::stream_of(connection);
}

OnSocket as_streams(Loop& loop, OnConnected callback) {
  return [&loop, callback = std::move(callback)](Result<sys::Descriptor> socket) mutable {
    Result<Stream> stream = stream_of(loop, std::move(socket));
    call_user("connect()", [&] { callback(std::move(stream)); });
  };
}

}  // namespace

void ConnectAttemptEnd::operator()(ConnectAttempt* attempt) const { delete attempt; }
bool ConnectAttemptEnd::is_pending(const ConnectAttempt& attempt) { return attempt.is_pending(); }

Connecting connect_socket(Loop& loop, const std::vector<Address>& addresses, OnSocket callback,
                          const ConnectOptions& options) {
  auto race = std::make_unique<ConnectRace>(loop, std::move(callback), options);
  race->add(addresses);
  race->close(sys::error_code(-EINVAL));
  race->begin();
  return Connecting(race.release());
}

Connecting connect_socket(Loop& loop, std::string_view host, std::uint16_t port, OnSocket callback,
                          const ConnectOptions& options) {
  const Result<Address> address = Address::ip(host, port);
  if (address) return connect_socket(loop, {*address}, std::move(callback), options);
  auto attempt = std::make_unique<NamedConnect>(loop, host, port, std::move(callback), options);
  attempt->start();
  return Connecting(attempt.release());
}

Connecting connect(Loop& loop, const Address& address, OnConnected callback,
                   const ConnectOptions& options) {
  return connect_socket(loop, {address}, as_streams(loop, std::move(callback)), options);
}

Connecting connect(Loop& loop, std::vector<Address> addresses, OnConnected callback,
                   const ConnectOptions& options) {
  return connect_socket(loop, addresses, as_streams(loop, std::move(callback)), options);
}

Connecting connect(Loop& loop, std::string_view host, std::uint16_t port, OnConnected callback,
                   const ConnectOptions& options) {
  return connect_socket(loop, host, port, as_streams(loop, std::move(callback)), options);
}

}  // namespace spate
