// A socket of UDP.
#pragma once

#include <deque>
#include <optional>

#include "sim/net/ip_socket.h"

namespace spate::sim {

class PacketSocket final : public IpSocket {
 public:
  PacketSocket(Network& network, int host, int family)
      : IpSocket(network, host, family, Protocol::udp) {}

  bool is_listening() const override { return false; }
  // How well it fits a packet from there to here; 0: it does not get it.
  int fit(const Place& here, const Place& peer) const;
  std::uint32_t ready() const override;
  ~PacketSocket() override { network_.memory.give(host_, arrived_size_); }

  // ---- by its program
  long listen(int) override { return -EOPNOTSUPP; }
  long connect(const sockaddr* address, socklen_t size) override;
  std::shared_ptr<Socket> accept(long& error) override;
  long send(const msghdr& message) override;
  long receive(msghdr& message, int flags) override;
  long shut_down(int how) override;
  long peer_address(sockaddr* address, socklen_t* size) const override;
  long set_option(int level, int name, const void* value, socklen_t size) override;

  // ---- by the network
  void on_parcel(const Parcel& parcel);
  void on_refused(const Place& by);

 private:
  // What the kernel counts for a packet, beside its bytes.
  static constexpr std::size_t kOverhead = 256;
  static constexpr std::size_t kDefaultRoom = 208 * 1024;

  long disconnect();
  long bind_somewhere();
  // Also whether so many bytes may be sent there.
  long destination(const msghdr& message, std::size_t size, Place& to) const;
  long named_destination(const msghdr& message, std::size_t size, Place& to) const;
  void describe(const Parcel& parcel, msghdr& message) const;
  void set_buffer(bool to_send, std::size_t size) override {
    (to_send ? send_buffer_ : receive_buffer_) = size;
  }
  std::size_t buffer(bool to_send) const override {
    return to_send ? send_buffer_ : receive_buffer_;
  }
  int take_error() override { return std::exchange(error_, 0); }

  std::optional<Place> remote_;
  std::deque<Parcel> arrivals_;
  std::size_t arrived_size_ = 0;
  std::size_t send_buffer_ = kDefaultRoom;
  std::size_t receive_buffer_ = kDefaultRoom;
  bool may_read_ = true;
  bool may_write_ = true;
  int error_ = 0;
  int tells_destination_ = 0;
  int tells_class_ = 0;
  int traffic_class_ = 0;
};

}  // namespace spate::sim
