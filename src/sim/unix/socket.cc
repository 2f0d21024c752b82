#include "sim/unix/socket.h"

#include <cerrno>

namespace spate::sim {

long LocalSocket::bind(const sockaddr* address, socklen_t size) {
  long error = 0;
  std::string name = name_from_system(address, size, error);
  if (error < 0 || !name_.empty()) return -EINVAL;
  if (const long result = names_.bind(*this, name); result < 0) return result;
  name_ = name;
  return 0;
}

long LocalSocket::local_address(sockaddr* address, socklen_t* size) const {
  name_to_system(name_, address, size);
  return 0;
}

}  // namespace spate::sim
