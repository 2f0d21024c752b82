// The common base of unix stream and datagram sockets.
#pragma once

#include <cerrno>
#include <string>

#include "sim/kernel/passed.h"
#include "sim/kernel/socket.h"
#include "sim/kernel/socket_memory.h"
#include "sim/unix/names.h"

namespace spate::sim {

class LocalSocket : public Socket {
 public:
  LocalSocket(LocalNames& names, SocketMemory& memory, int host, int type)
      : Socket(host, AF_UNIX, type), names_(names), memory_(memory) {
    names_.add(*this);
  }
  ~LocalSocket() override { names_.remove(*this); }

  const std::string& name() const { return name_; }
  // Moves sockets in its messages to `dropped`.
  virtual void give_up(Passed& dropped) = 0;
  void vanish() override { names_.release(*this); }

  long bind(const sockaddr* address, socklen_t size) final;
  long local_address(sockaddr* address, socklen_t* size) const final;

 protected:
  static constexpr std::size_t kDefaultRoom = 208 * 1024;

  void set_name(const std::string& name) { name_ = name; }
  void set_buffer(bool to_send, std::size_t size) final {
    (to_send ? send_buffer_ : receive_buffer_) = size;
  }
  std::size_t buffer(bool to_send) const final { return to_send ? send_buffer_ : receive_buffer_; }
  // Unix sockets have options of SOL_SOCKET only.
  long no_option(int level) const final { return level == SOL_SOCKET ? -ENOPROTOOPT : -EOPNOTSUPP; }

  LocalNames& names_;
  SocketMemory& memory_;
  std::size_t send_buffer_ = kDefaultRoom;

 private:
  std::string name_;  // Empty: unnamed.
  std::size_t receive_buffer_ = kDefaultRoom;
};

}  // namespace spate::sim
