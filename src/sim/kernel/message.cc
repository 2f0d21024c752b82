#include "sim/kernel/message.h"

#include <algorithm>

namespace spate::sim {

std::size_t size_of(const msghdr& message) {
  std::size_t size = 0;
  for (const iovec& piece : pieces_of(message)) size += piece.iov_len;
  return size;
}

std::string joined(const msghdr& message) {
  std::string bytes;
  for (const iovec& piece : pieces_of(message))
    bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return bytes;
}

std::size_t spread(std::string_view bytes, const msghdr& message) {
  std::size_t copied = 0;
  for (const iovec& piece : pieces_of(message)) {
    const std::string_view part = bytes.substr(copied, piece.iov_len);
    if (!part.empty()) std::memcpy(piece.iov_base, part.data(), part.size());
    copied += part.size();
  }
  return copied;
}

std::size_t Control::room_for(std::size_t size_of_each) const {
  return left() < CMSG_LEN(0) ? 0 : (left() - CMSG_LEN(0)) / size_of_each;
}

// As Linux, truncates a message for which there is too little room.
void Control::add_bytes(int level, int type, std::span<const std::byte> value) {
  if (left() < CMSG_LEN(value.size())) cut();
  if (left() < CMSG_LEN(0)) return;
  char* at = static_cast<char*>(message_.msg_control) + message_.msg_controllen;
  const std::size_t size = std::min(CMSG_LEN(value.size()), left());
  const cmsghdr header{.cmsg_len = size, .cmsg_level = level, .cmsg_type = type};
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + CMSG_LEN(0), value.data(), size - CMSG_LEN(0));
  message_.msg_controllen += std::min(CMSG_SPACE(value.size()), left());
}

}  // namespace spate::sim
