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

std::uint64_t print_of(const Place& place) {
  std::uint64_t print = place.port;
  for (const std::uint8_t byte : place.ip.bytes) print = print << 4 ^ print >> 60 ^ byte;
  return mix(print);
}

const Retries& retries_of(const Label& label) {
  return label.kind == Kind::knock || label.kind == Kind::welcome ? kHandshakeRetries
                                                                  : kDataRetries;
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"SYN", "SYN-ACK", "RST", "ACK", "FIN", "RST", "data"};
  return kNames[static_cast<std::size_t>(kind)];
}

PacketKind kind_of(Kind kind) {
  constexpr PacketKind kKinds[] = {PacketKind::syn, PacketKind::syn_ack, PacketKind::reset,
                                   PacketKind::ack, PacketKind::fin,     PacketKind::reset,
                                   PacketKind::data};
  return kKinds[static_cast<std::size_t>(kind)];
}

// Returns whether the sender waits for an acknowledgement, and gives up without one.
bool is_awaited(const Label& label) {
  return label.kind != Kind::credit && label.kind != Kind::reset && label.kind != Kind::refusal;
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
  doubt(from, to);
}

void Network::heal(int from, int to) {
  kernel_.note({.kind = EventKind::healed, .from = from, .to = to});
  link(from, to).is_cut = false;
  release(from, to);
  release_parcels(from, to);
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
  holds.crash(host);
  for (int other = 0; other < hosts; ++other) doubt(other, host);
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

void Network::doubt(int one, int other) {
  for (const auto& [id, connection] : connections_) {
    const int client = connection->client.host();
    const int server = connection->server.host();
    if (!(client == one && server == other) && !(client == other && server == one)) continue;
    connection->client.doubt_peer();
    connection->server.doubt_peer();
  }
}

void Network::probe(Connection& connection, Side from) {
  const Endpoint& peer = connection.end(opposite(from));
  const int here = connection.end(from).host();
  if (is_open(here, peer.host()) && is_open(peer.host(), here))
    send(connection, from, Label(Kind::credit), [](Connection&) {});
}

// ---- TCP segments

void Network::send(Connection& connection, Side from, Label label, Arrival arrive) {
  const std::uint64_t number = ++connection.sent[number_of(from)];
  const Nanos now = kernel_.now();
  transmit(connection, {connection.id, from, label, now, std::move(arrive), number, now});
}

std::function<Delivery(int)> Network::rule_for(const Connection& connection,
                                               const Segment& segment) {
  if (!rule_) return {};
  return [&](int attempt) {
    const Endpoint& from = connection.end(segment.from);
    const Endpoint& to = connection.end(opposite(segment.from));
    return rule_({from.host(), to.host(), from.local(), to.local(), kind_of(segment.label.kind),
                  segment.label.bytes, attempt});
  };
}

void Network::transmit(Connection& connection, Segment segment) {
  const int from = connection.end(segment.from).host();
  const int to = connection.end(opposite(segment.from)).host();
  if (capture_ != nullptr)
    capture_->segment(kernel_.wall(), connection, segment.from, segment.label);
  if (!is_open(from, to)) return hold(connection, std::move(segment));
  if (from == to) return dispatch(connection, std::move(segment), Nanos{0});
  const Retries& retries = retries_of(segment.label);
  const auto rule = rule_for(connection, segment);
  const Load load{.what = name_of(segment.label.kind),
                  .size = segment.label.size + kStreamHead,
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
  if (is_awaited(segment.label) && sender.silence == 0) {
    const Retries& retries = retries_of(segment.label);
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
    const Retries& retries = retries_of(segment.label);
    int attempt = 0;
    // The healed link is noticed by the next retransmission, whose time follows from the backoff.
    while (segment.sent + retries.until(attempt) < kernel_.now()) ++attempt;
    const Nanos again = segment.sent + retries.until(attempt);
    segment.last_sent = again;
    const std::size_t size = segment.label.size + kStreamHead;
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
  const bool is_reset = segment.label.kind == Kind::reset || segment.label.kind == Kind::refusal;
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
  if (capture_ != nullptr) capture_->arrived(segment.id, segment.from, segment.label);
  kernel_.note({.kind = EventKind::segment,
                .from = connection.end(segment.from).host(),
                .to = receiver.host(),
                .number = segment.id << 1 | static_cast<std::uint64_t>(segment.from),
                .print = segment.label.print,
                .what = name_of(segment.label.kind),
                .size = segment.label.size});
  receiver.note_received(kernel_.now());
  // A restarted host does not know the connections from before its crash.
  if (receiver.has_vanished()) return receiver.reset_unknown(segment.label);
  connection.end(segment.from).note_received(kernel_.now());
  segment.arrive(connection);
}

// ---- UDP packets

std::function<Delivery(int)> Network::rule_for(const Parcel& parcel) {
  if (!rule_) return {};
  return [&](int attempt) {
    return rule_({parcel.from_host, parcel.to_host, parcel.from, parcel.to, PacketKind::datagram,
                  parcel.bytes, attempt});
  };
}

void Network::send(Parcel parcel) {
  if (capture_ != nullptr)
    capture_->packet(kernel_.wall(), parcel.from, parcel.to, parcel.bytes, parcel.traffic_class);
  std::vector<Nanos> arrivals{kernel_.now()};
  if (parcel.from_host != parcel.to_host) {
    const auto rule = rule_for(parcel);
    arrivals = link(parcel.from_host, parcel.to_host)
                   .carry_packet({.what = "packet",
                                  .size = parcel.bytes.size() + kPacketHead,
                                  .rule = rule ? &rule : nullptr});
  }
  for (const Nanos arrival : arrivals) kernel_.at(arrival, [this, parcel] { deliver(parcel); });
}

void Network::release_parcels(int from, int to) {
  for (const Parcel& parcel : std::exchange(held_parcels_[{from, to}], {}))
    kernel_.at(kernel_.now(), [this, parcel] { deliver(parcel); });
}

void Network::deliver(const Parcel& parcel) {
  if (down_.contains(parcel.to_host)) return;
  if (parcel.from_host != parcel.to_host) {
    const Link& way = link(parcel.from_host, parcel.to_host);
    if (way.stops_arrivals() && way.in_flight == InFlight::held)
      return held_parcels_[{parcel.from_host, parcel.to_host}].push_back(parcel);
    if (way.stops_arrivals()) return;
  }
  kernel_.note({.kind = EventKind::packet,
                .from = parcel.from_host,
                .to = parcel.to_host,
                .number = print_of(parcel.from) ^ mix(print_of(parcel.to)),
                .print = print_of(parcel.bytes),
                .size = parcel.bytes.size()});
  PacketSocket* socket = packet_socket_at(parcel.to_host, parcel.to, parcel.from);
  if (socket == nullptr) return refuse(parcel);
  socket->on_parcel(parcel);
}

// Sends an ICMP error, which is reported to a connected sender.
void Network::refuse(const Parcel& parcel) {
  const auto tell = [this, parcel] {
    if (down_.contains(parcel.from_host)) return;
    PacketSocket* sender = packet_socket_at(parcel.from_host, parcel.from, parcel.to);
    if (sender != nullptr) sender->on_refused(parcel.to);
  };
  if (parcel.from_host == parcel.to_host) return kernel_.at(kernel_.now(), tell);
  const Load refusal{.what = "refusal", .size = kPacketHead};
  for (const Nanos arrival : link(parcel.to_host, parcel.from_host).carry_packet(refusal))
    kernel_.at(arrival, tell);
}

// Selects the receiver: a socket connected to the peer, otherwise one bound to the exact address,
// otherwise one of the family. Among several, the last one bound or connected, unless they share
// the port by SO_REUSEPORT.
PacketSocket* Network::packet_socket_at(int host, const Place& place, const Place& peer) const {
  const auto found = bound_.find({Protocol::udp, host, place.port});
  if (found == bound_.end()) return nullptr;
  std::vector<PacketSocket*> best;
  int most = 0;
  for (IpSocket* socket : found->second) {
    auto* own = static_cast<PacketSocket*>(socket);
    const int fit = own->fit(place, peer);
    if (fit > most) best.clear();
    if (fit != 0 && fit >= most) best.push_back(own);
    most = std::max(most, fit);
  }
  if (best.empty() || !best.back()->shares_port_evenly())
    return best.empty() ? nullptr : best.back();
  std::erase_if(best, [](const PacketSocket* one) { return !one->shares_port_evenly(); });
  const std::uint64_t number = print_of(peer) ^ mix(print_of(place));
  return best[kernel_.draw(Purpose::listener, number) % best.size()];
}

// ---- addresses

// By a socket, or by a connection whose socket may be closed.
bool Network::is_taken(const IpSocket& socket, const Place& place) {
  const auto found = bound_.find({socket.protocol(), socket.host(), place.port});
  if (found != bound_.end() && std::ranges::any_of(found->second, [&](const IpSocket* other) {
        if (other == &socket || socket.shares_port(*other)) return false;
        const Ip& ip = other->local().ip;
        return other->is_bound_to(ip, place.ip) || socket.overlaps(place.ip, ip, other->is_dual());
      }))
    return true;
  if (socket.protocol() == Protocol::udp) return false;
  return holds.any(socket.host(), place.port, kernel_.now(), [&](const PortHold& hold) {
    return socket.overlaps(place.ip, hold.local.ip, hold.is_dual) && !socket.shares_port(hold);
  });
}

// Not used at all, not even by sockets that would share it.
bool Network::is_free(const IpSocket& socket, const Place& place) {
  if (bound_.contains({socket.protocol(), socket.host(), place.port})) return false;
  return socket.protocol() == Protocol::udp ||
         !holds.any(socket.host(), place.port, kernel_.now(), [](const PortHold&) { return true; });
}

long Network::bind(IpSocket& socket, Place& place) {
  if (!place.ip.is_any() && place.ip.host(socket.host()) != socket.host()) return -EADDRNOTAVAIL;
  if (place.port == 0)
    place.port = free_port(socket.host(), socket.protocol(),
                           [&](std::uint16_t port) { return is_free(socket, {place.ip, port}); });
  if (place.port == 0 || is_taken(socket, place)) return -EADDRINUSE;
  bound_[{socket.protocol(), socket.host(), place.port}].push_back(&socket);
  return 0;
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

bool Network::has_connection(int host, const Place& from, const Place& to,
                             const std::function<bool(const PortHold&)>& is_in_the_way) {
  return holds.any(host, from.port, kernel_.now(), [&](const PortHold& hold) {
    return hold.local == from && hold.peer == to && is_in_the_way(hold);
  });
}

// Ports chosen by bind() are not shared. A connection in TIME_WAIT can be replaced by its own
// system after a second (tcp_tw_reuse).
bool Network::may_connect_from(int host, const Place& from, const Place& to) {
  if (bound_.contains({Protocol::tcp, host, from.port})) return false;
  const Nanos now = kernel_.now();
  if (holds.any(host, from.port, now, [](const PortHold& hold) { return hold.is_named; }))
    return false;
  return !has_connection(host, from, to, [&](const PortHold& hold) {
    return !hold.is_over || !from.ip.is_loopback() || now - hold.over_since < kLocalWait;
  });
}

long Network::find_port(int host, Place& from, const Place& to) {
  const auto is_alive = [](const PortHold& hold) { return !hold.is_over; };
  if (from.port != 0) return has_connection(host, from, to, is_alive) ? -EADDRNOTAVAIL : 0;
  from.port = free_port(host, Protocol::tcp, [&](std::uint16_t port) {
    return may_connect_from(host, {from.ip, port}, to);
  });
  return from.port == 0 ? -EADDRNOTAVAIL : 0;
}

IpSocket* Network::listener_at(int host, const Place& place, std::uint64_t number) const {
  const auto found = bound_.find({Protocol::tcp, host, place.port});
  if (found == bound_.end()) return nullptr;
  std::vector<IpSocket*> those;
  std::ranges::copy_if(found->second, std::back_inserter(those), [&](const IpSocket* socket) {
    return socket->is_listening() && socket->is_bound_to(socket->local().ip, place.ip);
  });
  return those.empty() ? nullptr : those[kernel_.draw(Purpose::listener, number) % those.size()];
}

// ---- connections

Connection& Network::make_connection(int client, Place from, int server, Place to) {
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

void Network::look(const std::function<void(const IpSocket&)>& see_listener,
                   const std::function<void(const Endpoint&, const Place&)>& see_end) const {
  for (const auto& [key, sockets] : bound_)
    for (const IpSocket* socket : sockets)
      if (socket->protocol() == Protocol::tcp && socket->is_listening()) see_listener(*socket);
  for (const auto& [id, connection] : connections_) {
    if (!connection->client.is_gone()) see_end(connection->client, connection->server.local());
    const bool is_accepted = !connection->server.is_connecting();
    if (is_accepted && !connection->server.is_gone())
      see_end(connection->server, connection->client.local());
  }
}

}  // namespace spate::sim
