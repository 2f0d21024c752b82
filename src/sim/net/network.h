// The network of a World: addresses, and packets in flight between two hosts.
//
// A packet is a call that is made on its receiver when it arrives. Segments of one connection and
// direction arrive in order, late if they were lost. UDP packets arrive as their link decides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/kernel/kernel.h"
#include "sim/kernel/socket_memory.h"
#include "sim/net/capture.h"
#include "sim/net/link.h"
#include "sim/net/port_reservations.h"
#include "sim/net/socket_address.h"
#include "sim/net/tcp.h"
#include "sim/net/zone.h"
#include "spate/function.h"
#include "spate/sim/link.h"

namespace spate::sim {

class PacketSocket;
class Steering;
class IpSocket;

enum class Protocol : std::uint8_t { tcp, udp };

// A UDP packet.
struct Datagram {
  int from_host;
  SocketAddress from;
  int to_host;
  SocketAddress to;
  std::string bytes;
  std::uint8_t traffic_class;  // IP's byte, whose low bits are the ECN codepoint.
};

// The arguments of a rule.
struct PacketView {
  int from_host;
  int to_host;
  const SocketAddress& from;
  const SocketAddress& to;
  PacketKind kind;
  std::string_view bytes;
  int attempt;
};

class Network {
 public:
  explicit Network(Kernel& kernel);

  Kernel& kernel() { return kernel_; }
  int hosts = 0;
  SocketMemory memory;
  Zone zone;

  // ---- links, one direction each
  void set_link(int from, int to, const LinkOptions& options) { link(from, to).options = options; }
  void cut(int from, int to, InFlight in_flight);
  void heal(int from, int to);
  std::size_t longest_segment(int from, int to);
  // Called for each packet between two hosts, if set.
  using Rule = std::function<Delivery(const PacketView&)>;
  void set_rule(Rule rule) { rule_ = std::move(rule); }
  // Records all packets that are sent.
  void set_capture(std::unique_ptr<Capture> capture) { capture_ = std::move(capture); }

  // ---- hosts
  // Destroys all its sockets without notifying peers.
  void crash(int host);
  // Makes the host respond again.
  void restart(int host);

  // ---- addresses
  // Binds a socket; port 0 becomes a free one. Returns 0, or a negated errno.
  long bind(IpSocket& socket, SocketAddress& address);
  void unbind(IpSocket& socket);
  // Makes it the last among those that share its port.
  void put_last(IpSocket& socket);
  // Sets the program that selects a socket of the group to which `socket` belongs.
  void steer(PacketSocket& socket, const std::shared_ptr<const Steering>& steering);
  bool may_listen(const IpSocket& socket);
  // The range of ports for sockets without one.
  struct PortRange {
    std::uint16_t first = 32768;
    std::uint16_t last = 60999;
  };
  void set_port_range(int host, PortRange range) { port_ranges_[host] = range; }
  // Selects a port for a connection from `from` to `to`, if `from` has none; otherwise checks
  // whether it may be used. Returns 0, or a negated errno.
  long find_port(int host, SocketAddress& from, const SocketAddress& to);
  // The ports of connections.
  PortReservations reservations;
  // Returns a listener; `number` selects among those that share an address.
  IpSocket* listener_at(int host, const SocketAddress& address, std::uint64_t number) const;

  // ---- connections
  Connection& make_connection(int client, SocketAddress from, int server, SocketAddress to);
  Connection* find(std::uint64_t id);
  // Removes a connection whose ends are gone and that has no segment in flight.
  void forget(std::uint64_t id);
  // Calls `arrive` with the connection when the segment has arrived, unless the connection is gone
  // by then.
  using Arrival = Function<void(Connection&)>;
  void send(Connection& connection, Side from, SegmentHeader header, Arrival arrive);

  // Returns whether the other end would respond now.
  bool reaches(const Connection& connection, Side from);
  // Probes the other end, which may have lost its state.
  void probe(Connection& connection, Side from);

  // Visits each listener, and each end of a connection that its host still has.
  void look(const std::function<void(const IpSocket&)>& visit_listener,
            const std::function<void(const Endpoint&, const SocketAddress& peer)>& visit_end) const;

  // ---- packets
  void send(Datagram datagram);

 private:
  struct Segment {
    std::uint64_t id;
    Side from;
    SegmentHeader header;
    Nanos sent;
    Arrival arrive;
    std::uint64_t number = 0;  // Per end, from 1.
    Nanos last_sent{0};        // The time of the successful transmission.
    bool is_held = false;      // It was in flight when the link was cut.
  };
  // Packets that wait until a direction between hosts is open again.
  using Held = std::vector<Segment>;

  Link& link(int from, int to);
  bool is_open(int from, int to);
  bool is_taken(const IpSocket& socket, const SocketAddress& address);
  bool is_free(const IpSocket& socket, const SocketAddress& address);
  bool has_connection(int host, const SocketAddress& from, const SocketAddress& to,
                      const std::function<bool(const PortReservation&)>& is_in_the_way);
  bool may_connect_from(int host, const SocketAddress& from, const SocketAddress& to);
  // Returns the next port of the host's range for which `is_free` is true; 0: none.
  std::uint16_t free_port(int host, Protocol protocol,
                          const std::function<bool(std::uint16_t)>& is_free);
  void transmit(Connection& connection, Segment segment);
  void hold(Connection& connection, Segment segment);
  void release(int from, int to);
  // Makes both ends of all connections between two hosts suspect each other.
  void suspect(int one, int other);
  void on_memory_freed(int host);
  static Nanos timeouts_of(const Endpoint& end, const Retries& retries);
  void give_up(Connection& connection, Side from, Nanos after);
  void dispatch(Connection& connection, Segment segment, Nanos delay);
  void arrive(Segment& segment);
  void deliver(Connection& connection, Segment& segment);
  void deliver_early(std::uint64_t id, Side from);
  void deliver(const Datagram& datagram);
  void refuse(const Datagram& datagram);
  void release_datagrams(int from, int to);
  // Returns the rule bound to a packet, so that it depends on the transmission only; empty without
  // one.
  std::function<Delivery(int attempt)> rule_for(const Connection& connection,
                                                const Segment& segment);
  std::function<Delivery(int attempt)> rule_for(const Datagram& datagram);
  std::vector<PacketSocket*> group_at(const PacketSocket& socket,
                                      const SocketAddress& address) const;
  void join_group(PacketSocket& socket, const SocketAddress& address);
  // `packet` is what the group's program sees; nullptr for an ICMP error, which it does not.
  PacketSocket* packet_socket_at(int host, const SocketAddress& address, const SocketAddress& peer,
                                 const Datagram* packet = nullptr) const;

  Kernel& kernel_;
  std::map<std::pair<int, int>, Link> links_;
  std::map<std::pair<int, int>, Held> held_;
  std::map<std::pair<int, int>, std::vector<Datagram>> held_datagrams_;
  Rule rule_;
  std::unique_ptr<Capture> capture_;
  std::set<int> down_;
  std::map<std::tuple<Protocol, int, std::uint16_t>, std::vector<IpSocket*>> bound_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  // Segments that wait for an earlier one, by connection, side and number.
  std::map<std::tuple<std::uint64_t, Side, std::uint64_t>, Segment> early_;
  std::map<int, PortRange> port_ranges_;
  std::map<std::pair<Protocol, int>, std::uint16_t> last_port_;
  std::uint64_t connection_count_ = 0;
};

}  // namespace spate::sim
