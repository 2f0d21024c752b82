// Messages of sendmsg(2) and recvmsg(2): their pieces and control messages.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace spate::sim {

inline std::span<const iovec> pieces_of(const msghdr& message) {
  return {message.msg_iov, message.msg_iovlen};
}

// Returns the number of bytes in its pieces.
std::size_t size_of(const msghdr& message);
// Returns all bytes of its pieces.
std::string joined(const msghdr& message);
// Copies `bytes` to its pieces. Returns how many fitted.
std::size_t spread(std::string_view bytes, const msghdr& message);

// Appends control messages, while there is room.
class Control {
 public:
  explicit Control(msghdr& message)
      : message_(message), room_(message.msg_control == nullptr ? 0 : message.msg_controllen) {
    message.msg_controllen = 0;
  }
  template <class T>
  void add(int level, int type, const T& value) {
    add_bytes(level, type, std::as_bytes(std::span(&value, 1)));
  }
  // Returns how many messages of a size fit.
  std::size_t room_for(std::size_t size_of_each) const;
  void add_bytes(int level, int type, std::span<const std::byte> value);
  void cut() { message_.msg_flags |= MSG_CTRUNC; }

 private:
  std::size_t left() const { return room_ - message_.msg_controllen; }

  msghdr& message_;
  const std::size_t room_;
};

}  // namespace spate::sim
