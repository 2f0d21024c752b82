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
  bool shares_port(const IpSocket& other) const;
  void vanish() override { is_bound_ = false; }

  long bind(const sockaddr* address, socklen_t size) override;
  long local_address(sockaddr* address, socklen_t* size) const final;
  long set_option(int level, int name, const void* value, socklen_t size) override;

 protected:
  std::optional<int> option(int level, int name) override;
  void unbind();
  // This host's address of the same kind as `ip`.
  Ip own_like(const Ip& ip) const;

  Network& network_;
  const Protocol protocol_;
  Place local_;
  bool is_bound_ = false;

 private:
  // Options that are remembered.
  int v6_only_ = 0;
  int shares_port_ = 0;
  int shares_address_ = 0;
};

}  // namespace spate::sim
