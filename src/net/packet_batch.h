// PacketBatch: where datagrams arrive, as many as one call to the kernel brings. One a loop: what
// it shows is gone with the next batch, of whichever socket.
#pragma once

#include <cstddef>
#include <span>

#include "spate/net/datagram.h"
#include "sys/datagram.h"

namespace spate {

class PacketBatch {
 public:
  // Receives packets of up to `size` bytes into parts of `room`. Returns how many messages, or a
  // negated errno.
  long receive(int fd, std::span<std::byte> room, std::size_t size);
  // What the last receive() has brought: more packets than messages where the kernel has joined
  // some.
  std::span<const Packet> packets() const { return {packets_, unpacked_}; }

 private:
  static constexpr std::size_t kMessages = 64;
  static constexpr std::size_t kMostPackets = 128;  // The kernel joins no more in one message.

  void prepare(std::span<std::byte> room, std::size_t size);
  void prepare(std::size_t index);
  void unpack(mmsghdr& message);

  mmsghdr messages_[kMessages];
  iovec parts_[kMessages];
  sys::SystemAddress peers_[kMessages];
  alignas(cmsghdr) char control_[kMessages][sys::kControlSpace];
  Packet packets_[kMostPackets];
  std::size_t size_ = 0;   // That the messages are prepared for.
  std::size_t count_ = 0;  // Messages that there is room for.
  std::size_t unpacked_ = 0;
};

}  // namespace spate
