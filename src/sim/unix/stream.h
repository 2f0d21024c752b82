// A unix stream socket: initially unconnected, then a listener or one end of a connection. Written
// bytes arrive at once.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "sim/unix/channel.h"
#include "sim/unix/socket.h"

namespace spate::sim {

class LocalStream final : public LocalSocket {
 public:
  LocalStream(LocalNames& names, SocketMemory& memory, int host)
      : LocalSocket(names, memory, host, SOCK_STREAM), arrivals_(memory, host) {}
  ~LocalStream() override;
  static void join(LocalStream& one, LocalStream& other);

  bool is_listening() const override { return backlog_ >= 0; }
  void give_up(Passed& dropped) override;
  void vanish() override;
  std::uint32_t ready() const override;
  void on_memory() override { changed(); }

  long listen(int backlog) override;
  long connect(const sockaddr* address, socklen_t size) override;
  std::shared_ptr<Socket> accept(long& error) override;
  long send(const msghdr& message) override;
  long receive(msghdr& message, int flags) override;
  long shut_down(int how) override;
  long peer_address(sockaddr* address, socklen_t* size) const override;

 private:
  // Called when the peer is closed. With unread bytes, or before it was accepted, it gets an error.
  void lose_peer(int error);
  int take_error() override { return std::exchange(error_, 0); }

  // ---- a listener
  int backlog_ = -1;
  std::deque<std::shared_ptr<LocalStream>> waiting_;
  // ---- a connection
  LocalStream* peer_ = nullptr;
  std::string peer_name_;
  Channel arrivals_;
  bool is_connected_ = false;  // True also after the connection has ended.
  bool may_read_ = true;       // More bytes may arrive.
  bool may_write_ = true;
  int error_ = 0;
};

}  // namespace spate::sim
