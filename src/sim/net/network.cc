#include "sim/net/network.h"

#include <algorithm>
#include <cerrno>

#include "sim/net/ip_socket.h"
#include "sim/net/packet_socket.h"

namespace spate::sim {

namespace {

constexpr Nanos kLocalWait = std::chrono::seconds{1};

// The headers of IP with TCP or UDP.
constexpr std::size_t kStreamHead = 40;
constexpr std::size_t kPacketHead = 28;
// With the usual options of TCP, which limit the size of a segment.
constexpr std::size_t kSegmentHead = 52;

std::uint64_t hash_of(const SocketAddress& address) {
  std::uint64_t hash = address.port;
  for (const std::uint8_t byte : address.ip.bytes) hash = hash << 4 ^ hash >> 60 ^ byte;
  return mix(hash);
}

const Retries& retries_of(const SegmentHeader& header) {
  return header.kind == SegmentKind::syn || header.kind == SegmentKind::syn_ack ? kHandshakeRetries
                                                                                : kDataRetries;
}

std::string_view name_of(SegmentKind kind) {
  constexpr std::string_view kNames[] = {"SYN", "SYN-ACK", "RST", "ACK", "FIN", "RST", "data"};
  return kNames[static_cast<std::size_t>(kind)];
}

PacketKind kind_of(SegmentKind kind) {
  constexpr PacketKind kKinds[] = {PacketKind::syn, PacketKind::syn_ack, PacketKind::reset,
                                   PacketKind::ack, PacketKind::fin,     PacketKind::reset,
                                   PacketKind::data};
  return kKinds[static_cast<std::size_t>(kind)];
}

// Returns whether the sender waits for an acknowledgement, and gives up without one.
bool is_awaited(const SegmentHeader& header) {
  return header.kind != SegmentKind::window_update && header.kind != SegmentKind::reset &&
         header.kind != SegmentKind::syn_rst;
}

}  // namespace

Network::Network(Kernel& kernel)
    : memory(
          [this](int host) { kernel_.at(kernel_.now(), [this, host] { on_memory_freed(host); }); }),
      kernel_(kernel) {}

void Network::on_memory_freed(int host) {
  for (const auto& [id, connection] : connections_)
    for (Endpoint* end : {&connection->client, &connection->server})
      if (end->host() == host) end->on_memory();
  kernel_.on_memory_freed(host);
}

// ---- links

Link& Network::link(int from, int to) {
  return links_.try_emplace({from, to}, kernel_, from, to).first->second;
}

std::size_t Network::longest_segment(int from, int to) {
  return from == to ? kSegment : link(from, to).options.mtu - kSegmentHead;
}

bool Network::is_open(int from, int to) {
  return !down_.contains(to) && (from == to || !link(from, to).is_cut);
}

void Network::cut(int from, int to, InFlight in_flight) {
  kernel_.note({.kind = EventKind::cut, .from = from, .to = to});
  link(from, to).is_cut = true;
  link(from, to).in_flight = in_flight;
  suspect(from, to);
}

void Network::heal(int from, int to) {
  kernel_.note({.kind = EventKind::healed, .from = from, .to = to});
  link(from, to).is_cut = false;
  release(from, to);
  release_datagrams(from, to);
}

// ---- hosts

void Network::crash(int host) {
  down_.insert(host);
  std::erase_if(connections_, [host](const auto& one) {
    return one.second->client.host() == host && one.second->server.host() == host;
  });
  for (const auto& [id, connection] : connections_) {
    for (Endpoint* end : {&connection->client, &connection->server})
      if (end->host() == host && !end->has_vanished()) {
        end->vanished_at = kernel_.now();
        end->vanish();
      }
  }
  std::erase_if(connections_, [](const auto& one) {
    return one.second->client.is_gone() && one.second->server.is_gone();
  });
  std::erase_if(bound_, [host](const auto& one) { return std::get<1>(one.first) == host; });
  reservations.crash(host);
  for (int other = 0; other < hosts; ++other) suspect(other, host);
}

void Network::restart(int host) {
  down_.erase(host);
  for (int from = 0; from < hosts; ++from) release(from, host);
}

// ---- reachability

bool Network::reaches(const Connection& connection, Side from) {
  const Endpoint& peer = connection.end(opposite(from));
  const int here = connection.end(from).host();
  return !peer.has_vanished() && is_open(here, peer.host()) && is_open(peer.host(), here);
}

void Network::suspect(int one, int other) {
  for (const auto& [id, connection] : connections_) {
    const int client = connection->client.host();
    const int server = connection->server.host();
    if (!(client == one && server == other) && !(client == other && server == one)) continue;
    connection->client.suspect_peer();
    connection->server.suspect_peer();
  }
}

void Network::probe(Connection& connection, Side from) {
  const Endpoint& peer = connection.end(opposite(from));
  const int here = connection.end(from).host();
  if (is_open(here, peer.host()) && is_open(peer.host(), here))
    send(connection, from, SegmentHeader(SegmentKind::window_update), [](Connection&) {});
}

// ---- TCP segments

void Network::send(Connection& connection, Side from, SegmentHeader header, Arrival arrive) {
  const std::uint64_t number = ++connection.sent[number_of(from)];
  const Nanos now = kernel_.now();
  transmit(connection, {connection.id, from, header, now, std::move(arrive), number, now});
}

std::function<Delivery(int)> Network::rule_for(const Connection& connection,
                                               const Segment& segment) {
  if (!rule_) return {};
  return [&](int attempt) {
    const Endpoint& from = connection.end(segment.from);
    const Endpoint& to = connection.end(opposite(segment.from));
    return rule_({from.host(), to.host(), from.local(), to.local(), kind_of(segment.header.kind),
                  segment.header.bytes, attempt});
  };
}

void Network::transmit(Connection& connection, Segment segment) {
  const int from = connection.end(segment.from).host();
  const int to = connection.end(opposite(segment.from)).host();
  if (capture_ != nullptr)
    capture_->segment(kernel_.wall(), connection, segment.from, segment.header);
  if (!is_open(from, to)) return hold(connection, std::move(segment));
  if (from == to) return dispatch(connection, std::move(segment), Nanos{0});
  const Retries& retries = retries_of(segment.header);
  const auto rule = rule_for(connection, segment);
  const Load load{.what = name_of(segment.header.kind),
                  .size = segment.header.size + kStreamHead,
                  .rule = rule ? &rule : nullptr};
  if (const std::optional<Passage> passage = link(from, to).carry(load, retries)) {
    segment.last_sent += passage->begins_after;
    return dispatch(connection, std::move(segment), passage->begins_after + passage->takes);
  }
  give_up(connection, segment.from, timeouts_of(connection.end(segment.from), retries));
}

// The user timeout does not extend connecting.
Nanos Network::timeouts_of(const Endpoint& end, const Retries& retries) {
  const Nanos usual = retries.until(retries.most + 1);
  const Nanos wanted = end.timeouts().user_timeout;
  if (wanted == Nanos{0}) return usual;
  return end.is_connecting() ? std::min(wanted, usual) : wanted;
}

// Retransmits until the link is healed or the sender gives up.
void Network::hold(Connection& connection, Segment segment) {
  const Endpoint& sender = connection.end(segment.from);
  if (is_awaited(segment.header) && sender.silence == 0) {
    const Retries& retries = retries_of(segment.header);
    give_up(connection, segment.from, timeouts_of(sender, retries));
  }
  held_[{sender.host(), connection.end(opposite(segment.from)).host()}].push_back(
      std::move(segment));
}

// Makes an end fail after a time, unless a segment arrives before.
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
    if (std::exchange(segment.is_held, false)) {
      dispatch(*connection, std::move(segment), Nanos{0});
      continue;
    }
    const Retries& retries = retries_of(segment.header);
    int attempt = 0;
    // The healed link is noticed by the next retransmission, whose time follows from the backoff.
    while (segment.sent + retries.until(attempt) < kernel_.now()) ++attempt;
    const Nanos again = segment.sent + retries.until(attempt);
    segment.last_sent = again;
    const std::size_t size = segment.header.size + kStreamHead;
    const Nanos delay = from == to ? Nanos{0} : link(from, to).delay(size);
    dispatch(*connection, std::move(segment), again - kernel_.now() + delay);
  }
}

void Network::dispatch(Connection& connection, Segment segment, Nanos delay) {
  // Segments of one direction arrive in the order in which they were sent.
  Nanos& last = connection.last_arrival[number_of(segment.from)];
  last = std::max(last, kernel_.now() + delay);
  kernel_.at(last, [this, arriving = std::move(segment)]() mutable { arrive(arriving); });
}

// Retransmissions of a crashed host do not arrive. A segment after one that is still being
// retransmitted waits for it; only a reset does not.
void Network::arrive(Segment& segment) {
  Connection* connection = find(segment.id);
  if (connection == nullptr) return;
  const Endpoint& sender = connection->end(segment.from);
  const bool is_reset =
      segment.header.kind == SegmentKind::reset || segment.header.kind == SegmentKind::syn_rst;
  if (!is_reset && segment.last_sent > sender.vanished_at) return;
  const int to = connection->end(opposite(segment.from)).host();
  if (down_.contains(to)) return hold(*connection, std::move(segment));
  if (sender.host() != to && link(sender.host(), to).stops_arrivals()) {
    segment.is_held = link(sender.host(), to).in_flight == InFlight::held;
    return hold(*connection, std::move(segment));
  }
  std::uint64_t& arrived = connection->arrived[number_of(segment.from)];
  if (is_reset) return deliver(*connection, segment);
  if (segment.number != arrived + 1) {
    early_.emplace(std::tuple{segment.id, segment.from, segment.number}, std::move(segment));
    return;
  }
  ++arrived;
  const std::uint64_t id = segment.id;
  const Side from = segment.from;
  deliver(*connection, segment);
  if (!early_.empty()) deliver_early(id, from);
}

void Network::deliver_early(std::uint64_t id, Side from) {
  for (;;) {
    Connection* connection = find(id);
    if (connection == nullptr) return;
    const auto next = early_.find({id, from, connection->arrived[number_of(from)] + 1});
    if (next == early_.end()) return;
    Segment segment = std::move(next->second);
    early_.erase(next);
    ++connection->arrived[number_of(from)];
    deliver(*connection, segment);
  }
}

void Network::deliver(Connection& connection, Segment& segment) {
  Endpoint& receiver = connection.end(opposite(segment.from));
  if (capture_ != nullptr) capture_->arrived(segment.id, segment.from, segment.header);
  kernel_.note({.kind = EventKind::segment,
                .from = connection.end(segment.from).host(),
                .to = receiver.host(),
                .number = segment.id << 1 | static_cast<std::uint64_t>(segment.from),
                .hash = segment.header.hash,
                .what = name_of(segment.header.kind),
                .size = segment.header.size});
  receiver.note_received(kernel_.now());
  // A restarted host does not know the connections from before its crash.
  if (receiver.has_vanished()) return receiver.reset_unknown(segment.header);
  connection.end(segment.from).note_received(kernel_.now());
  segment.arrive(connection);
}

// ---- UDP packets

std::function<Delivery(int)> Network::rule_for(const Datagram& datagram) {
  if (!rule_) return {};
  return [&](int attempt) {
    return rule_({datagram.from_host, datagram.to_host, datagram.from, datagram.to,
                  PacketKind::datagram, datagram.bytes, attempt});
  };
}

void Network::send(Datagram datagram) {
  if (capture_ != nullptr)
    capture_->packet(kernel_.wall(), datagram.from, datagram.to, datagram.bytes,
                     datagram.traffic_class);
  std::vector<Nanos> arrivals{kernel_.now()};
  if (datagram.from_host != datagram.to_host) {
    const auto rule = rule_for(datagram);
    arrivals = link(datagram.from_host, datagram.to_host)
                   .carry_packet({.what = "packet",
                                  .size = datagram.bytes.size() + kPacketHead,
                                  .rule = rule ? &rule : nullptr});
  }
  for (const Nanos arrival : arrivals) kernel_.at(arrival, [this, datagram] { deliver(datagram); });
}

void Network::release_datagrams(int from, int to) {
  for (const Datagram& datagram : std::exchange(held_datagrams_[{from, to}], {}))
    kernel_.at(kernel_.now(), [this, datagram] { deliver(datagram); });
}

void Network::deliver(const Datagram& datagram) {
  if (down_.contains(datagram.to_host)) return;
  if (datagram.from_host != datagram.to_host) {
    const Link& way = link(datagram.from_host, datagram.to_host);
    if (way.stops_arrivals() && way.in_flight == InFlight::held)
      return held_datagrams_[{datagram.from_host, datagram.to_host}].push_back(datagram);
    if (way.stops_arrivals()) return;
  }
  kernel_.note({.kind = EventKind::packet,
                .from = datagram.from_host,
                .to = datagram.to_host,
                .number = hash_of(datagram.from) ^ mix(hash_of(datagram.to)),
                .hash = hash_of(datagram.bytes),
                .size = datagram.bytes.size()});
  PacketSocket* socket = packet_socket_at(datagram.to_host, datagram.to, datagram.from, &datagram);
  if (socket == nullptr) return refuse(datagram);
  socket->on_datagram(datagram);
}

// Sends an ICMP error, which is reported to a connected sender.
void Network::refuse(const Datagram& datagram) {
  const auto tell = [this, datagram] {
    if (down_.contains(datagram.from_host)) return;
    PacketSocket* sender = packet_socket_at(datagram.from_host, datagram.from, datagram.to);
    if (sender != nullptr) sender->on_refused(datagram.to);
  };
  if (datagram.from_host == datagram.to_host) return kernel_.at(kernel_.now(), tell);
  const Load refusal{.what = "refusal", .size = kPacketHead};
  for (const Nanos arrival : link(datagram.to_host, datagram.from_host).carry_packet(refusal))
    kernel_.at(arrival, tell);
}

// Selects the receiver: a socket connected to the peer, otherwise one bound to the exact address,
// otherwise one of the family. Among several, the last one bound or connected, unless they share
// the port by SO_REUSEPORT: then the group's program selects it, or a hash of the addresses.
PacketSocket* Network::packet_socket_at(int host, const SocketAddress& address,
                                        const SocketAddress& peer, const Datagram* packet) const {
  const auto found = bound_.find({Protocol::udp, host, address.port});
  if (found == bound_.end()) return nullptr;
  std::vector<PacketSocket*> best;
  int most = 0;
  for (IpSocket* socket : found->second) {
    auto* own = static_cast<PacketSocket*>(socket);
    const int fit = own->fit(address, peer);
    if (fit > most) best.clear();
    if (fit != 0 && fit >= most) best.push_back(own);
    most = std::max(most, fit);
  }
  if (best.empty() || !best.back()->shares_port_evenly())
    return best.empty() ? nullptr : best.back();
  std::erase_if(best, [](const PacketSocket* one) { return !one->shares_port_evenly(); });
  if (const auto& steering = best.front()->steering(); steering != nullptr && packet != nullptr) {
    const std::uint32_t chosen = steering->socket_for(bytes_of(packet->bytes));
    if (chosen < best.size()) return best[chosen];
  }
  const std::uint64_t number = hash_of(peer) ^ mix(hash_of(address));
  return best[kernel_.draw(Purpose::listener, number) % best.size()];
}

// ---- addresses

// By a socket, or by a connection whose socket may be closed.
bool Network::is_taken(const IpSocket& socket, const SocketAddress& address) {
  const auto found = bound_.find({socket.protocol(), socket.host(), address.port});
  if (found != bound_.end() && std::ranges::any_of(found->second, [&](const IpSocket* other) {
        if (other == &socket || socket.shares_port(*other)) return false;
        const Ip& ip = other->local().ip;
        return other->is_bound_to(ip, address.ip) ||
               socket.overlaps(address.ip, ip, other->is_dual());
      }))
    return true;
  if (socket.protocol() == Protocol::udp) return false;
  return reservations.any(
      socket.host(), address.port, kernel_.now(), [&](const PortReservation& reservation) {
        return socket.overlaps(address.ip, reservation.local.ip, reservation.is_dual) &&
               !socket.shares_port(reservation);
      });
}

// Not used at all, not even by sockets that would share it.
bool Network::is_free(const IpSocket& socket, const SocketAddress& address) {
  if (bound_.contains({socket.protocol(), socket.host(), address.port})) return false;
  return socket.protocol() == Protocol::udp ||
         !reservations.any(socket.host(), address.port, kernel_.now(),
                           [](const PortReservation&) { return true; });
}

long Network::bind(IpSocket& socket, SocketAddress& address) {
  if (!address.ip.is_any() && address.ip.host(socket.host()) != socket.host())
    return -EADDRNOTAVAIL;
  if (address.port == 0)
    address.port = free_port(socket.host(), socket.protocol(), [&](std::uint16_t port) {
      return is_free(socket, {address.ip, port});
    });
  if (address.port == 0 || is_taken(socket, address)) return -EADDRINUSE;
  bound_[{socket.protocol(), socket.host(), address.port}].push_back(&socket);
  if (socket.protocol() == Protocol::udp) join_group(static_cast<PacketSocket&>(socket), address);
  return 0;
}

// The program of the group applies to sockets that join it later, and replaces their own.
void Network::join_group(PacketSocket& socket, const SocketAddress& address) {
  for (PacketSocket* other : group_at(socket, address)) {
    if (other != &socket) return socket.set_steering(other->steering());
  }
}

void Network::steer(PacketSocket& socket, const std::shared_ptr<const Steering>& steering) {
  socket.set_steering(steering);
  for (PacketSocket* other : group_at(socket, socket.local())) other->set_steering(steering);
}

// Returns the sockets that share the address by SO_REUSEPORT.
std::vector<PacketSocket*> Network::group_at(const PacketSocket& socket,
                                             const SocketAddress& address) const {
  std::vector<PacketSocket*> group;
  const auto found = bound_.find({Protocol::udp, socket.host(), address.port});
  if (found == bound_.end()) return group;
  for (IpSocket* one : found->second) {
    if (one->shares_port_evenly() && (one == &socket || one->local().ip == address.ip))
      group.push_back(static_cast<PacketSocket*>(one));
  }
  return group;
}

bool Network::may_listen(const IpSocket& socket) { return !is_taken(socket, socket.local()); }

void Network::unbind(IpSocket& socket) {
  const auto found = bound_.find({socket.protocol(), socket.host(), socket.local().port});
  if (found == bound_.end()) return;
  std::erase(found->second, &socket);
  if (found->second.empty()) bound_.erase(found);
}

void Network::put_last(IpSocket& socket) {
  std::vector<IpSocket*>& those = bound_[{socket.protocol(), socket.host(), socket.local().port}];
  std::erase(those, &socket);
  those.push_back(&socket);
}

std::uint16_t Network::free_port(int host, Protocol protocol,
                                 const std::function<bool(std::uint16_t)>& is_free) {
  const auto found = port_ranges_.find(host);
  const PortRange range = found == port_ranges_.end() ? PortRange{} : found->second;
  std::uint16_t& last = last_port_[{protocol, host}];
  for (int tried = range.first; tried <= range.last; ++tried) {
    const bool is_inside = last >= range.first && last < range.last;
    last = is_inside ? static_cast<std::uint16_t>(last + 1) : range.first;
    if (is_free(last)) return last;
  }
  return 0;
}

bool Network::has_connection(int host, const SocketAddress& from, const SocketAddress& to,
                             const std::function<bool(const PortReservation&)>& is_in_the_way) {
  return reservations.any(host, from.port, kernel_.now(), [&](const PortReservation& reservation) {
    return reservation.local == from && reservation.peer == to && is_in_the_way(reservation);
  });
}

// Ports chosen by bind() are not shared. A connection in TIME_WAIT can be replaced by its own
// system after a second (tcp_tw_reuse).
bool Network::may_connect_from(int host, const SocketAddress& from, const SocketAddress& to) {
  if (bound_.contains({Protocol::tcp, host, from.port})) return false;
  const Nanos now = kernel_.now();
  if (reservations.any(host, from.port, now,
                       [](const PortReservation& reservation) { return reservation.is_named; }))
    return false;
  return !has_connection(host, from, to, [&](const PortReservation& reservation) {
    return !reservation.is_over || !from.ip.is_loopback() ||
           now - reservation.over_since < kLocalWait;
  });
}

long Network::find_port(int host, SocketAddress& from, const SocketAddress& to) {
  const auto is_alive = [](const PortReservation& reservation) { return !reservation.is_over; };
  if (from.port != 0) return has_connection(host, from, to, is_alive) ? -EADDRNOTAVAIL : 0;
  from.port = free_port(host, Protocol::tcp, [&](std::uint16_t port) {
    return may_connect_from(host, {from.ip, port}, to);
  });
  return from.port == 0 ? -EADDRNOTAVAIL : 0;
}

IpSocket* Network::listener_at(int host, const SocketAddress& address, std::uint64_t number) const {
  const auto found = bound_.find({Protocol::tcp, host, address.port});
  if (found == bound_.end()) return nullptr;
  std::vector<IpSocket*> those;
  std::ranges::copy_if(found->second, std::back_inserter(those), [&](const IpSocket* socket) {
    return socket->is_listening() && socket->is_bound_to(socket->local().ip, address.ip);
  });
  return those.empty() ? nullptr : those[kernel_.draw(Purpose::listener, number) % those.size()];
}

// ---- connections

Connection& Network::make_connection(int client, SocketAddress from, int server, SocketAddress to) {
  const std::uint64_t id = ++connection_count_;
  auto made = std::make_unique<Connection>(*this, id, client, from, server, to);
  return *connections_.emplace(id, std::move(made)).first->second;
}

void Network::forget(std::uint64_t id) {
  early_.erase(early_.lower_bound({id, Side::client, 0}),
               early_.lower_bound({id + 1, Side::client, 0}));
  connections_.erase(id);
}

Connection* Network::find(std::uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Network::look(
    const std::function<void(const IpSocket&)>& visit_listener,
    const std::function<void(const Endpoint&, const SocketAddress&)>& visit_end) const {
  for (const auto& [key, sockets] : bound_)
    for (const IpSocket* socket : sockets)
      if (socket->protocol() == Protocol::tcp && socket->is_listening()) visit_listener(*socket);
  for (const auto& [id, connection] : connections_) {
    if (!connection->client.is_gone()) visit_end(connection->client, connection->server.local());
    const bool is_accepted = !connection->server.is_connecting();
    if (is_accepted && !connection->server.is_gone())
      visit_end(connection->server, connection->client.local());
  }
}

}  // namespace spate::sim
