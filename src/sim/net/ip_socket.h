// The common base of TCP and UDP sockets.
#pragma once

#include "sim/kernel/socket.h"
#include "sim/net/network.h"
#include "sim/net/socket_address.h"

namespace spate::sim {

class IpSocket : public Socket {
 public:
  IpSocket(Network& network, int host, int family, Protocol protocol)
      : Socket(host, family, protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM),
        network_(network),
        protocol_(protocol) {}
  ~IpSocket() override { unbind(); }

  Protocol protocol() const { return protocol_; }
  const SocketAddress& local() const { return local_; }
  // Returns whether a socket bound to `own` receives packets sent to `ip`, at the same port.
  bool is_bound_to(const Ip& own, const Ip& ip) const;
  // Returns whether both may use one port.
  bool shares_port(const IpSocket& other) const;
  bool shares_port(const PortReservation& reservation) const;
  // Returns whether it has SO_REUSEPORT: connections and packets are distributed.
  bool shares_port_evenly() const { return shares_port_ != 0; }
  // Returns whether it is an IPv6 socket that is not v6-only.
  bool is_dual() const { return family_ == AF_INET6 && v6_only_ == 0; }
  // Returns whether it must not use `ip` while another socket uses `other`, with the same port.
  bool overlaps(const Ip& ip, const Ip& other, bool other_is_dual) const;
  // Returns the reservation of a connection of this socket, for conflicts with others.
  PortReservation own_reservation() const;
  void vanish() override { is_bound_ = false; }

  long bind(const sockaddr* address, socklen_t size) final;
  long local_address(sockaddr* address, socklen_t* size) const final;
  long set_option(int level, int name, const void* value, socklen_t size) override;

 protected:
  void inherit(const IpSocket& listener);
  // Returns whether it or its connection has a port.
  virtual bool has_port() { return is_bound_; }
  std::optional<int> option(int level, int name) override;
  void unbind();
  void unbind_drawn_port() {
    if (is_port_drawn_) unbind();
  }
  // Checks that its port may be used for listening, or draws one.
  long bind_to_listen();
  Ip any_ip() const { return family_ == AF_INET ? Ip::any_v4() : Ip(); }
  // Returns this host's address for sending to `ip`.
  Ip own_like(const Ip& ip) const;
  // Returns whether it is an IPv6 socket with an IPv4 address.
  bool is_mapped() const { return family_ == AF_INET6 && local_.ip.is_v4(); }
  // Checks whether it may connect to `to`; an unspecified address becomes this host's.
  long may_connect(Ip& to) const;

  Network& network_;
  const Protocol protocol_;
  SocketAddress local_;
  bool is_bound_ = false;       // It has its own port.
  bool has_address_ = false;    // By bind().
  bool is_port_drawn_ = false;  // Not chosen by the program.

 private:
  long bind_address(const SocketAddress& address);
  void take_address(const SocketAddress& address);

  // ---- stored options
  int v6_only_ = 0;
  int shares_port_ = 0;
  int shares_address_ = 0;
  int draws_port_late_ = 0;  // IP_BIND_ADDRESS_NO_PORT
};

}  // namespace spate::sim
