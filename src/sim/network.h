// The network of a World: who listens where, and what is on its way between two hosts.
//
// A packet is a call that is made at its receiver's when it arrives. Those of one connection and
// direction arrive in order; links delay and cut, and lose nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/kernel.h"
#include "sim/place.h"
#include "sim/tcp.h"
#include "spate/sim/world.h"

namespace spate::sim {

class Socket;

class Network {
 public:
  explicit Network(Kernel& kernel) : kernel_(kernel) {}

  Kernel& kernel() { return kernel_; }
  int hosts = 0;

  // ---- links
  void set_link(int one, int other, const LinkOptions& options) {
    link(one, other).options = options;
  }
  void cut(int one, int other) { link(one, other).is_cut = true; }
  void heal(int one, int other);

  // ---- addresses
  // 0, or a negated errno. A port of 0 becomes a free one.
  long bind(Socket& socket, Place& place);
  void unbind(Socket& socket);
  // 0 if there is none.
  std::uint16_t free_port(int host);
  // Of those that share an address, which is drawn by `number`.
  Socket* listener_at(int host, const Place& place, std::uint64_t number) const;

  // ---- connections
  Connection& make_connection(int client, Place from, int server, Place to);
  Connection* find(std::uint64_t id);
  // Both ends are gone, and nothing more is to be delivered.
  void forget(std::uint64_t id) { connections_.erase(id); }
  // Calls `arrive` with the connection when the packet has come to the other end, unless there is
  // none any more.
  using Arrival = std::move_only_function<void(Connection&)>;
  // `print` stands for its content in the trace.
  void send(Connection& connection, Side from, std::uint64_t print, Arrival arrive);

 private:
  struct Packet {
    std::uint64_t id;
    Side from;
    std::uint64_t print;
    Arrival arrive;
  };
  struct Link {
    LinkOptions options;
    bool is_cut = false;
    std::vector<Packet> held{};
    std::uint64_t sent = 0;
    std::uint64_t number = 0;
  };
  Link& link(int one, int other);
  bool is_taken(const Socket& socket, const Place& place) const;
  void dispatch(Connection& connection, Packet packet, Nanos delay);
  void deliver(Packet& packet);
  Nanos delay_over(Link& link);

  Kernel& kernel_;
  std::map<std::pair<int, int>, Link> links_;
  std::map<std::pair<int, std::uint16_t>, std::vector<Socket*>> bound_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::map<int, std::uint16_t> last_port_;
  std::uint64_t connection_count_ = 0;
};

}  // namespace spate::sim
