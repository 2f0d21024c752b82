// A socket of IP: what those of TCP and those of UDP share.
#pragma once

#include "sim/kernel/socket.h"
#include "sim/net/network.h"
#include "sim/net/place.h"

namespace spate::sim {

class IpSocket : public Socket {
 public:
  IpSocket(Network& network, int host, int family, Protocol protocol)
      : Socket(host, family, protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM),
        network_(network),
        protocol_(protocol) {}
  ~IpSocket() override { unbind(); }

  Protocol protocol() const { return protocol_; }
  const Place& local() const { return local_; }
  // Whether it gets what is sent to `ip` and its port, if bound to `own`.
  bool hears(const Ip& own, const Ip& ip) const;
  // Whether both may have one port.
  bool shares_port(const IpSocket& other) const;
  bool shares_port(const PortHold& hold) const;
  // SO_REUSEPORT: each of those that have it gets a part.
  bool shares_port_evenly() const { return shares_port_ != 0; }
  // Of IPv6, and it does not do without IPv4.
  bool is_dual() const { return family_ == AF_INET6 && v6_only_ == 0; }
  // Whether it may not have `ip` while another's is `other`, with the same port.
  bool overlaps(const Ip& ip, const Ip& other, bool other_is_dual) const;
  // What a connection of this one's leaves to others.
  PortHold own_hold() const;
  void vanish() override { is_bound_ = false; }

  long bind(const sockaddr* address, socklen_t size) final;
  long local_address(sockaddr* address, socklen_t* size) const final;
  long set_option(int level, int name, const void* value, socklen_t size) override;

 protected:
  void inherit(const IpSocket& listener);
  // Its own, or its connection's.
  virtual bool has_port() { return is_bound_; }
  std::optional<int> option(int level, int name) override;
  void unbind();
  void unbind_drawn_port() {
    if (is_port_drawn_) unbind();
  }
  // Its port may be had by who listens, or it gets one.
  long bind_to_listen();
  Ip any_ip() const { return family_ == AF_INET ? Ip::any_v4() : Ip(); }
  // This host's address from which it sends to `ip`.
  Ip own_like(const Ip& ip) const;
  // An IPv6 socket that has an address of IPv4.
  bool is_mapped() const { return family_ == AF_INET6 && local_.ip.is_v4(); }
  // Whether it may connect to `to`, which stands for this host if it is no address.
  long may_connect(Ip& to) const;

  Network& network_;
  const Protocol protocol_;
  Place local_;
  bool is_bound_ = false;       // It has a port of its own.
  bool has_address_ = false;    // By bind().
  bool is_port_drawn_ = false;  // Not the program's choice.

 private:
  long bind_address(const Place& place);
  void take_address(const Place& place);

  // Options that are remembered.
  int v6_only_ = 0;
  int shares_port_ = 0;
  int shares_address_ = 0;
  int draws_port_late_ = 0;  // IP_BIND_ADDRESS_NO_PORT
};

}  // namespace spate::sim
