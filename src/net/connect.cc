#include "spate/net/connect.h"

#include "net/connect_race.h"

namespace spate {

Connecting connect(Loop& loop, const Address& address, OnConnected callback,
                   const ConnectOptions& options) {
  return connect(loop, std::vector<Address>{address}, std::move(callback), options);
}

Connecting connect(Loop& loop, std::vector<Address> addresses, OnConnected callback,
                   const ConnectOptions& options) {
  auto race = std::make_unique<ConnectRace>(loop, std::move(callback), options);
  race->add(std::move(addresses));
  race->close();
  race->start();
  return Connecting(std::move(race));
}

}  // namespace spate
