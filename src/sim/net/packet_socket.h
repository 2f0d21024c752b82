// A UDP socket.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "sim/net/ip_socket.h"
#include "sim/net/steering.h"

namespace spate::sim {

class PacketSocket final : public IpSocket {
 public:
  PacketSocket(Network& network, int host, int family)
      : IpSocket(network, host, family, Protocol::udp) {}

  bool is_listening() const override { return false; }
  // Returns how specifically it matches a packet from `peer` to `here`; 0: not at all.
  int fit(const SocketAddress& here, const SocketAddress& peer) const;
  std::uint32_t ready() const override;
  ~PacketSocket() override { network_.memory.give(host_, arrived_size_); }

  // ---- called by the program
  long listen(int) override { return -EOPNOTSUPP; }
  long connect(const sockaddr* address, socklen_t size) override;
  std::shared_ptr<Socket> accept(long& error) override;
  long send(const msghdr& message) override;
  long receive(msghdr& message, int flags) override;
  long shut_down(int how) override;
  long peer_address(sockaddr* address, socklen_t* size) const override;
  long set_option(int level, int name, const void* value, socklen_t size) override;
  long get_option(int level, int name, void* value, socklen_t* size) override;

  // ---- called by the network
  void on_datagram(const Datagram& datagram);
  void on_refused(const SocketAddress& by);
  // Returns the program that selects a socket of its group; nullptr without one.
  const std::shared_ptr<const Steering>& steering() const { return steering_; }
  void set_steering(std::shared_ptr<const Steering> steering) { steering_ = std::move(steering); }

 private:
  // Bytes that the kernel accounts for a packet in addition to its own.
  static constexpr std::size_t kOverhead = 256;
  static constexpr std::size_t kDefaultRoom = 208 * 1024;
  // The MTUs of a host's loopback, and of the links between hosts.
  static constexpr int kLocalMtu = 65536;
  static constexpr int kLinkMtu = 1500;

  int mtu_to(int host) const { return host == host_ ? kLocalMtu : kLinkMtu; }
  long steer(const void* value, socklen_t size);
  long disconnect();
  long bind_somewhere();
  // Determines the destination. Also checks whether that many bytes may be sent.
  long destination(const msghdr& message, std::size_t size, SocketAddress& to) const;
  long named_destination(const msghdr& message, std::size_t size, SocketAddress& to) const;
  // Reads the control messages: the source, the traffic class, and into `segment` the size of the
  // packets into which it is split; 0: it is not.
  long read_info(const msghdr& message, Datagram& datagram, std::size_t& segment) const;
  long read_info(const cmsghdr& header, Datagram& datagram, std::size_t& segment) const;
  long set_source(Datagram& datagram, const Ip& source) const;
  // Checks whether packets of the size may be sent to the host.
  long may_send(const Datagram& datagram, std::size_t segment) const;
  void send_split(Datagram datagram, std::size_t segment);
  void describe(const Datagram& datagram, msghdr& message) const;
  void set_buffer(bool to_send, std::size_t size) override {
    (to_send ? send_buffer_ : receive_buffer_) = size;
  }
  std::size_t buffer(bool to_send) const override {
    return to_send ? send_buffer_ : receive_buffer_;
  }
  int take_error() override { return std::exchange(error_, 0); }

  std::optional<SocketAddress> remote_;
  std::deque<Datagram> arrivals_;
  std::size_t arrived_size_ = 0;
  std::size_t send_buffer_ = kDefaultRoom;
  std::size_t receive_buffer_ = kDefaultRoom;
  bool may_read_ = true;
  bool may_write_ = true;
  int error_ = 0;
  int reports_destination_ = 0;
  int reports_class_ = 0;
  int traffic_class_ = 0;
  int fragments_ = IP_PMTUDISC_WANT;  // IP_MTU_DISCOVER.
  std::uint32_t dropped_ = 0;
  std::shared_ptr<const Steering> steering_;
};

}  // namespace spate::sim
