// Shows the listening sockets of this process as the kernel sees them.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <vector>

#include "spate/error.h"
#include "spate/net/address.h"
#include "sys/descriptor.h"
#include "system/accept_queue.h"
#include "system/open_fds.h"
#include "tests/support/descriptors.h"

namespace spate::testing {

template <class T>
T socket_option(int fd, int level, int name) {
  T value{};
  socklen_t size = sizeof(value);
  EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0) << name;
  return value;
}

// The listening sockets of this process at the port.
inline std::vector<int> listening_at(std::uint16_t port) {
  std::vector<int> found;
  for (const int fd : open_fds()) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    sockaddr_in6 address{};
    socklen_t address_size = sizeof(address);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_size) != 0) continue;
    if (ntohs(address.sin6_port) == port) found.push_back(fd);
  }
  return found;
}

// How many connections wait to be accepted.
inline unsigned waiting_at(std::uint16_t port) {
  unsigned waiting = 0;
  for (const int fd : listening_at(port)) waiting += accept_queue(fd).waiting;
  return waiting;
}

// A socket that listens and whose queue is full: attempts to connect are neither accepted nor
// refused.
class FullListener {
 public:
  explicit FullListener(const Address& address)
      : socket_(open_socket(family_of(address), SOCK_STREAM)),
        first_(open_socket(family_of(address), SOCK_STREAM)) {
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    auto* raw = reinterpret_cast<sockaddr*>(&bound);
    EXPECT_EQ(::bind(socket_.get(), static_cast<const sockaddr*>(address.data()),
                     static_cast<socklen_t>(address.size())),
              0);
    EXPECT_EQ(::listen(socket_.get(), 0), 0);
    EXPECT_EQ(::getsockname(socket_.get(), raw, &size), 0);
    address_ = must(Address::from_system(raw, size));
    EXPECT_EQ(::connect(first_.get(), raw, size), 0);
  }
  const Address& address() const { return address_; }

 private:
  static int family_of(const Address& address) {
    return address.family() == Address::Family::ipv6 ? AF_INET6 : AF_INET;
  }

  sys::Descriptor socket_;
  sys::Descriptor first_;
  Address address_;
};

}  // namespace spate::testing
