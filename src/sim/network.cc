#include "sim/network.h"

#include <algorithm>
#include <cerrno>

#include "sim/socket.h"

namespace spate::sim {

namespace {

constexpr std::uint16_t kFirstFreePort = 32768;

// Whether a socket bound to `own` gets what is sent to `place`.
bool hears(const Socket& socket, const Place& own, const Ip& ip) {
  if (own.ip == ip) return true;
  if (!own.ip.is_any()) return false;
  return own.ip.is_v4() ? ip.is_v4() : !ip.is_v4() || !socket.is_v6_only();
}

}  // namespace

// ---- links

Network::Link& Network::link(int one, int other) {
  const std::pair<int, int> ends{std::min(one, other), std::max(one, other)};
  Link& found = links_[ends];
  found.number = static_cast<std::uint64_t>(ends.first) << 32 | static_cast<unsigned>(ends.second);
  return found;
}

void Network::heal(int one, int other) {
  Link& healed = link(one, other);
  healed.is_cut = false;
  for (Packet& packet : std::exchange(healed.held, {})) {
    if (Connection* connection = find(packet.id))
      dispatch(*connection, std::move(packet), delay_over(healed));
  }
}

Nanos Network::delay_over(Link& link) {
  const auto jitter = static_cast<std::uint64_t>(std::max(link.options.jitter, Nanos{0}).count());
  const std::uint64_t drawn =
      jitter == 0 ? 0
                  : kernel_.draw(Purpose::jitter, mix(link.number) ^ ++link.sent) % (jitter + 1);
  return std::max(link.options.latency, Nanos{0}) + Nanos{static_cast<std::int64_t>(drawn)};
}

void Network::send(Connection& connection, Side from, std::uint64_t print, Arrival arrive) {
  const int one = connection.end(from).host();
  const int other = connection.end(opposite(from)).host();
  Packet packet{connection.id, from, print, std::move(arrive)};
  if (one == other) return dispatch(connection, std::move(packet), Nanos{0});
  Link& over = link(one, other);
  if (over.is_cut) return over.held.push_back(std::move(packet));
  dispatch(connection, std::move(packet), delay_over(over));
}

void Network::dispatch(Connection& connection, Packet packet, Nanos delay) {
  Nanos& last = connection.last_arrival[static_cast<std::size_t>(packet.from)];
  last = std::max(last, kernel_.now() + delay);
  kernel_.at(last, [this, arriving = std::move(packet)]() mutable { deliver(arriving); });
}

void Network::deliver(Packet& packet) {
  Connection* connection = find(packet.id);
  if (connection == nullptr) return;
  kernel_.note(static_cast<std::uint64_t>(kernel_.now().count()));
  kernel_.note(packet.id << 1 | static_cast<std::uint64_t>(packet.from));
  kernel_.note(packet.print);
  packet.arrive(*connection);
}

// ---- addresses

bool Network::is_taken(const Socket& socket, const Place& place) const {
  const auto found = bound_.find({socket.host(), place.port});
  if (found == bound_.end()) return false;
  return std::ranges::any_of(found->second, [&](const Socket* other) {
    if (other == &socket || (other->shares_port() && socket.shares_port())) return false;
    return hears(*other, other->local(), place.ip) || hears(socket, place, other->local().ip);
  });
}

long Network::bind(Socket& socket, Place& place) {
  if (!place.ip.is_any() && place.ip.host(socket.host()) != socket.host()) return -EADDRNOTAVAIL;
  if (place.port == 0) place.port = free_port(socket.host());
  if (place.port == 0 || is_taken(socket, place)) return -EADDRINUSE;
  bound_[{socket.host(), place.port}].push_back(&socket);
  return 0;
}

void Network::unbind(Socket& socket) {
  const auto found = bound_.find({socket.host(), socket.local().port});
  if (found == bound_.end()) return;
  std::erase(found->second, &socket);
  if (found->second.empty()) bound_.erase(found);
}

std::uint16_t Network::free_port(int host) {
  std::uint16_t& last = last_port_[host];
  for (int tried = kFirstFreePort; tried <= UINT16_MAX; ++tried) {
    last = last < kFirstFreePort || last == UINT16_MAX ? kFirstFreePort
                                                       : static_cast<std::uint16_t>(last + 1);
    if (!bound_.contains({host, last})) return last;
  }
  return 0;
}

Socket* Network::listener_at(int host, const Place& place, std::uint64_t number) const {
  const auto found = bound_.find({host, place.port});
  if (found == bound_.end()) return nullptr;
  std::vector<Socket*> those;
  std::ranges::copy_if(found->second, std::back_inserter(those), [&](const Socket* socket) {
    return socket->is_listening() && hears(*socket, socket->local(), place.ip);
  });
  return those.empty() ? nullptr : those[kernel_.draw(Purpose::listener, number) % those.size()];
}

// ---- connections

Connection& Network::make_connection(int client, Place from, int server, Place to) {
  const std::uint64_t id = ++connection_count_;
  auto made = std::make_unique<Connection>(*this, id, client, from, server, to);
  return *connections_.emplace(id, std::move(made)).first->second;
}

Connection* Network::find(std::uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

}  // namespace spate::sim
