#include "net/packet_batch.h"

#include <algorithm>

namespace spate {

namespace {

Address address_of(const sys::SystemAddress& system) {
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

}  // namespace

// Most batches are short: only what the kernel has written to is made ready again.
long PacketBatch::receive(int fd, std::span<std::byte> room, std::size_t size) {
  if (size != size_) prepare(room, size);
  unpacked_ = 0;
  const long received = sys::receive_messages(fd, {messages_, count_});
  for (long i = 0; i < received; ++i) {
    unpack(messages_[i]);
    prepare(static_cast<std::size_t>(i));
  }
  return received;
}

void PacketBatch::prepare(std::span<std::byte> room, std::size_t size) {
  size_ = size;
  count_ = std::clamp<std::size_t>(room.size() / size, 1, kMessages);
  for (std::size_t i = 0; i < count_; ++i) {
    parts_[i] = {.iov_base = room.data() + i * size, .iov_len = size};
    prepare(i);
  }
}

void PacketBatch::prepare(std::size_t index) {
  messages_[index].msg_hdr = {.msg_name = &peers_[index].storage,
                              .msg_namelen = sizeof(peers_[index].storage),
                              .msg_iov = &parts_[index],
                              .msg_iovlen = 1,
                              .msg_control = control_[index],
                              .msg_controllen = sizeof(control_[index]),
                              .msg_flags = 0};
}

void PacketBatch::unpack(mmsghdr& message) {
  msghdr& header = message.msg_hdr;
  const sys::PacketInfo info = sys::packet_info(header);
  const auto peer = Address::from_system(header.msg_name, header.msg_namelen);
  const Bytes all(static_cast<const std::byte*>(header.msg_iov->iov_base), message.msg_len);
  const std::size_t segment = info.segment != 0 ? info.segment : all.size();
  std::size_t at = 0;
  do {
    Packet& packet = packets_[unpacked_++];
    packet.bytes = all.subspan(at, std::min(segment, all.size() - at));
    packet.peer = peer ? *peer : Address();
    packet.local = info.local.size != 0 ? address_of(info.local) : Address();
    packet.ecn = static_cast<Ecn>(info.ecn);
    packet.truncated = (header.msg_flags & MSG_TRUNC) != 0;
    at += segment;
  } while (at < all.size() && unpacked_ < kMostPackets);
}

}  // namespace spate
