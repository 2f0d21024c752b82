// A unix datagram socket: loses nothing, and send() fails if the receiver's queue is full.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "sim/unix/socket.h"

namespace spate::sim {

class LocalPackets final : public LocalSocket {
 public:
  LocalPackets(LocalNames& names, SocketMemory& memory, int host)
      : LocalSocket(names, memory, host, SOCK_DGRAM) {}
  ~LocalPackets() override {
    drop_arrivals();
    leave_all();
  }
  static void join(LocalPackets& one, LocalPackets& other);

  bool is_listening() const override { return false; }
  void give_up(Passed& dropped) override;
  void vanish() override;
  std::uint32_t ready() const override;

  long listen(int) override { return -EOPNOTSUPP; }
  long connect(const sockaddr* address, socklen_t size) override;
  std::shared_ptr<Socket> accept(long& error) override;
  long send(const msghdr& message) override;
  long receive(msghdr& message, int flags) override;
  long shut_down(int how) override;
  long peer_address(sockaddr* address, socklen_t* size) const override;

 private:
  static constexpr std::size_t kMostWaiting = 10;  // net.unix.max_dgram_qlen, and one more.

  struct Packet {
    std::string bytes;
    std::string from;
    Passed passed;
  };

  LocalPackets* destination(const msghdr& message, long& error);
  void set_peer(LocalPackets* peer);
  void leave_all();
  void drop_arrivals();
  bool is_full() const { return arrivals_.size() > kMostWaiting; }
  int take_error() override { return 0; }

  LocalPackets* peer_ = nullptr;
  std::string peer_name_;
  bool has_lost_peer_ = false;
  bool may_read_ = true;
  bool may_write_ = true;
  std::vector<LocalPackets*> senders_;  // Sockets that have this one as their peer.
  std::deque<Packet> arrivals_;
};

}  // namespace spate::sim
