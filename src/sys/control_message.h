// Control messages: reads those of a received message, and writes those of a message to send.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <new>

#include "sys/datagram.h"

namespace spate::sys {

template <class Take>
void for_each_control(msghdr& message, Take take) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    take(header);
  }
}

// Returns T() if the kernel had no room for the whole value.
template <class T>
T payload(cmsghdr* header) {
  T value{};
  if (header->cmsg_len >= CMSG_LEN(sizeof(value)))
    std::memcpy(&value, CMSG_DATA(header), sizeof(value));
  return value;
}

template <class System>
SystemAddress made_of(const System& system) {
  SystemAddress address;
  std::memcpy(&address.storage, &system, sizeof(system));
  address.size = sizeof(system);
  return address;
}
inline SystemAddress made_of(const in_addr& address) {
  sockaddr_in system{};
  system.sin_family = AF_INET;
  system.sin_addr = address;
  return made_of(system);
}
inline SystemAddress made_of(const in6_addr& address) {
  sockaddr_in6 system{};
  system.sin6_family = AF_INET6;
  system.sin6_addr = address;
  return made_of(system);
}

// Appends control messages to `message`, in `control`.
class ControlWriter {
 public:
  ControlWriter(msghdr& message, SendControl& control) : message_(message), control_(control) {
    message.msg_control = control.bytes;
    message.msg_controllen = 0;
  }

  template <class T>
  void add(int level, int type, const T& value) {
    auto* header = new (control_.bytes + message_.msg_controllen) cmsghdr();
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = static_cast<ControlSize>(CMSG_LEN(sizeof(value)));
    std::memcpy(CMSG_DATA(header), &value, sizeof(value));
    message_.msg_controllen += static_cast<ControlSize>(CMSG_SPACE(sizeof(value)));
  }

 private:
  msghdr& message_;
  SendControl& control_;
};

}  // namespace spate::sys
