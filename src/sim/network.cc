#include "sim/network.h"

#include <algorithm>
#include <cerrno>

#include "sim/ip_socket.h"
#include "sim/packet_socket.h"

namespace spate::sim {

namespace {

constexpr std::uint16_t kFirstFreePort = 32768;

// What IP, and TCP or UDP put before the bytes.
constexpr std::size_t kStreamHead = 40;
constexpr std::size_t kPacketHead = 28;

std::uint64_t print_of(const Place& place) {
  std::uint64_t print = place.port;
  for (const std::uint8_t byte : place.ip.bytes) print = print << 4 ^ print >> 60 ^ byte;
  return mix(print);
}

const Retries& retries_of(const Label& label) {
  return label.kind == Kind::knock || label.kind == Kind::welcome ? kHandshakeRetries
                                                                  : kDataRetries;
}

// Whether its sender waits for an answer, and gives up without one.
bool is_awaited(const Label& label) {
  return label.kind != Kind::credit && label.kind != Kind::reset && label.kind != Kind::refusal;
}

}  // namespace

// ---- links

Link& Network::link(int from, int to) {
  const auto number = static_cast<std::uint64_t>(from) << 32 | static_cast<unsigned>(to);
  return links_.try_emplace({from, to}, kernel_, number).first->second;
}

bool Network::is_open(int from, int to) {
  return !down_.contains(to) && (from == to || !link(from, to).is_cut);
}

void Network::heal(int from, int to) {
  link(from, to).is_cut = false;
  release(from, to);
}

// ---- hosts

void Network::crash(int host) {
  down_.insert(host);
  std::erase_if(connections_, [host](const auto& one) {
    return one.second->client.host() == host && one.second->server.host() == host;
  });
  for (const auto& [id, connection] : connections_) {
    for (Endpoint* end : {&connection->client, &connection->server})
      if (end->host() == host) end->vanish();
  }
  std::erase_if(connections_, [](const auto& one) {
    return one.second->client.is_gone() && one.second->server.is_gone();
  });
  std::erase_if(bound_, [host](const auto& one) { return std::get<1>(one.first) == host; });
}

void Network::restart(int host) {
  down_.erase(host);
  for (int from = 0; from < hosts; ++from) release(from, host);
}

// ---- segments of TCP

void Network::send(Connection& connection, Side from, Label label, Arrival arrive) {
  transmit(connection, {connection.id, from, label, kernel_.now(), std::move(arrive)});
}

void Network::transmit(Connection& connection, Segment segment) {
  const int from = connection.end(segment.from).host();
  const int to = connection.end(opposite(segment.from)).host();
  if (!is_open(from, to)) return hold(connection, std::move(segment));
  if (from == to) return dispatch(connection, std::move(segment), Nanos{0});
  const Retries& retries = retries_of(segment.label);
  const std::optional<Nanos> delay =
      link(from, to).carry(segment.label.size + kStreamHead, retries);
  if (delay) return dispatch(connection, std::move(segment), *delay);
  give_up(connection, segment.from, retries.until(retries.most + 1));
}

// It is sent again and again, until there is a way or its sender gives up.
void Network::hold(Connection& connection, Segment segment) {
  const Endpoint& sender = connection.end(segment.from);
  if (is_awaited(segment.label) && sender.silence == 0) {
    const Retries& retries = retries_of(segment.label);
    give_up(connection, segment.from, retries.until(retries.most + 1));
  }
  held_[{sender.host(), connection.end(opposite(segment.from)).host()}].push_back(
      std::move(segment));
}

// Unless something has come through until then.
void Network::give_up(Connection& connection, Side from, Nanos after) {
  const std::uint64_t silence = ++connection_count_;
  connection.end(from).silence = silence;
  kernel_.at(kernel_.now() + after, [this, id = connection.id, from, silence] {
    Connection* found = find(id);
    if (found != nullptr && found->end(from).silence == silence) found->end(from).on_silence();
  });
}

void Network::release(int from, int to) {
  if (!is_open(from, to)) return;
  for (Segment& segment : std::exchange(held_[{from, to}], {})) {
    Connection* connection = find(segment.id);
    if (connection == nullptr || connection->end(segment.from).has_vanished()) continue;
    connection->end(segment.from).silence = 0;
    const Retries& retries = retries_of(segment.label);
    int attempt = 0;
    while (segment.sent + retries.until(attempt) < kernel_.now()) ++attempt;
    const Nanos again = segment.sent + retries.until(attempt);
    const std::size_t size = segment.label.size + kStreamHead;
    const Nanos delay = from == to ? Nanos{0} : link(from, to).delay(size);
    dispatch(*connection, std::move(segment), again - kernel_.now() + delay);
  }
}

void Network::dispatch(Connection& connection, Segment segment, Nanos delay) {
  Nanos& last = connection.last_arrival[static_cast<std::size_t>(segment.from)];
  last = std::max(last, kernel_.now() + delay);
  kernel_.at(last, [this, arriving = std::move(segment)]() mutable { deliver(arriving); });
}

void Network::deliver(Segment& segment) {
  Connection* connection = find(segment.id);
  if (connection == nullptr) return;
  Endpoint& receiver = connection->end(opposite(segment.from));
  if (down_.contains(receiver.host())) return hold(*connection, std::move(segment));
  kernel_.note(static_cast<std::uint64_t>(kernel_.now().count()));
  kernel_.note(segment.id << 1 | static_cast<std::uint64_t>(segment.from));
  kernel_.note(segment.label.print);
  if (receiver.has_vanished()) return receiver.answer_stranger(segment.label);
  segment.arrive(*connection);
}

// ---- packets of UDP

void Network::send(Parcel parcel) {
  std::vector<Nanos> arrivals{kernel_.now()};
  if (parcel.from_host != parcel.to_host)
    arrivals =
        link(parcel.from_host, parcel.to_host).carry_packet(parcel.bytes.size() + kPacketHead);
  for (const Nanos arrival : arrivals) kernel_.at(arrival, [this, parcel] { deliver(parcel); });
}

void Network::deliver(const Parcel& parcel) {
  if (down_.contains(parcel.to_host)) return;
  kernel_.note(static_cast<std::uint64_t>(kernel_.now().count()));
  kernel_.note(print_of(parcel.from) ^ mix(print_of(parcel.to)));
  kernel_.note(print_of(parcel.bytes));
  PacketSocket* socket = packet_socket_at(parcel.to_host, parcel.to, parcel.from);
  if (socket == nullptr) return refuse(parcel);
  socket->on_parcel(parcel);
}

// ICMP says it to the sender, who is told if it is connected.
void Network::refuse(const Parcel& parcel) {
  const auto tell = [this, parcel] {
    if (down_.contains(parcel.from_host)) return;
    PacketSocket* sender = packet_socket_at(parcel.from_host, parcel.from, parcel.to);
    if (sender != nullptr) sender->on_refused(parcel.to);
  };
  if (parcel.from_host == parcel.to_host) return kernel_.at(kernel_.now(), tell);
  for (const Nanos arrival : link(parcel.to_host, parcel.from_host).carry_packet(kPacketHead))
    kernel_.at(arrival, tell);
}

PacketSocket* Network::packet_socket_at(int host, const Place& place, const Place& peer) const {
  const std::uint64_t number = print_of(peer) ^ mix(print_of(place));
  const auto found = bound_.find({Protocol::udp, host, place.port});
  if (found == bound_.end()) return nullptr;
  for (IpSocket* socket : found->second) {
    auto* own = static_cast<PacketSocket*>(socket);
    if (own->is_connected_to(peer) && own->hears(own->local().ip, place.ip)) return own;
  }
  return static_cast<PacketSocket*>(socket_at(Protocol::udp, host, place, number));
}

// ---- addresses

bool Network::is_taken(const IpSocket& socket, const Place& place) const {
  const auto found = bound_.find({socket.protocol(), socket.host(), place.port});
  if (found == bound_.end()) return false;
  return std::ranges::any_of(found->second, [&](const IpSocket* other) {
    if (other == &socket || other->shares_port(socket)) return false;
    return other->hears(other->local().ip, place.ip) || socket.hears(place.ip, other->local().ip);
  });
}

long Network::bind(IpSocket& socket, Place& place) {
  if (!place.ip.is_any() && place.ip.host(socket.host()) != socket.host()) return -EADDRNOTAVAIL;
  if (place.port == 0) place.port = free_port(socket.host(), socket.protocol());
  if (place.port == 0 || is_taken(socket, place)) return -EADDRINUSE;
  bound_[{socket.protocol(), socket.host(), place.port}].push_back(&socket);
  return 0;
}

void Network::unbind(IpSocket& socket) {
  const auto found = bound_.find({socket.protocol(), socket.host(), socket.local().port});
  if (found == bound_.end()) return;
  std::erase(found->second, &socket);
  if (found->second.empty()) bound_.erase(found);
}

std::uint16_t Network::free_port(int host, Protocol protocol) {
  std::uint16_t& last = last_port_[{protocol, host}];
  for (int tried = kFirstFreePort; tried <= UINT16_MAX; ++tried) {
    last = last < kFirstFreePort || last == UINT16_MAX ? kFirstFreePort
                                                       : static_cast<std::uint16_t>(last + 1);
    if (!bound_.contains({protocol, host, last})) return last;
  }
  return 0;
}

IpSocket* Network::socket_at(Protocol protocol, int host, const Place& place,
                             std::uint64_t number) const {
  const auto found = bound_.find({protocol, host, place.port});
  if (found == bound_.end()) return nullptr;
  std::vector<IpSocket*> those;
  std::ranges::copy_if(found->second, std::back_inserter(those), [&](const IpSocket* socket) {
    return socket->is_listening() && socket->hears(socket->local().ip, place.ip);
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
