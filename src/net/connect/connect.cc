#include "spate/net/connect.h"

#include "net/connect/connect_race.h"
#include "net/connect/named_connect.h"
#include "sys/descriptor.h"

namespace spate {

void ConnectAttemptEnd::operator()(ConnectAttempt* attempt) const { delete attempt; }

Connecting connect(Loop& loop, const Address& address, OnConnected callback,
                   const ConnectOptions& options) {
  return connect(loop, std::vector<Address>{address}, std::move(callback), options);
}

Connecting connect(Loop& loop, std::vector<Address> addresses, OnConnected callback,
                   const ConnectOptions& options) {
  auto race = std::make_unique<ConnectRace>(loop, std::move(callback), options);
  race->add(addresses);
  race->close(sys::error_code(-EINVAL));
  race->begin();
  return Connecting(race.release());
}

Connecting connect(Loop& loop, std::string_view host, std::uint16_t port, OnConnected callback,
                   const ConnectOptions& options) {
  const Result<Address> address = Address::ip(host, port);
  if (address) return connect(loop, *address, std::move(callback), options);
  auto attempt = std::make_unique<NamedConnect>(loop, host, port, std::move(callback), options);
  attempt->start();
  return Connecting(attempt.release());
}

}  // namespace spate
