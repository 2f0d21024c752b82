#include "net/datagram/packet_batch.h"

#include <algorithm>

namespace spate {

namespace {

Address address_of(const void* system, std::size_t size) {
  return Address::from_system(system, size).value_or(Address());
}

}  // namespace

// Most batches are short: only what the kernel has written to is made ready again.
long PacketBatch::receive(int fd, const PacketShape& shape) {
  if (shape != shape_) prepare(shape);
  unpacked_ = 0;
  const long received = sys::receive_messages(fd, {messages_, count_});
  for (long i = 0; i < received; ++i) {
    unpack(messages_[i]);
    make_ready(static_cast<std::size_t>(i));
  }
  return received;
}

void PacketBatch::prepare(const PacketShape& shape) {
  shape_ = shape;
  const std::size_t size = shape.joined ? kRoom : shape.packet_size;
  count_ = std::clamp<std::size_t>(kRoom / size, 1, kMessages);
  for (std::size_t i = 0; i < count_; ++i) {
    parts_[i] = {.iov_base = room_ + i * size, .iov_len = size};
    make_ready(i);
  }
}

// A unix socket's peer may send descriptors along. Without room beside the bytes the kernel closes
// them, and none gets in here.
void PacketBatch::make_ready(std::size_t index) {
  messages_[index].msg_hdr = {.msg_name = &peers_[index].storage,
                              .msg_namelen = sizeof(peers_[index].storage),
                              .msg_iov = &parts_[index],
                              .msg_iovlen = 1,
                              .msg_control = shape_.has_info ? control_[index] : nullptr,
                              .msg_controllen = shape_.has_info ? sizeof(control_[index]) : 0,
                              .msg_flags = 0};
}

// What the kernel says has come is believed only as far as there is room.
void PacketBatch::unpack(mmsghdr& message) {
  msghdr& header = message.msg_hdr;
  const sys::PacketInfo info = sys::packet_info(header);
  const Address peer = address_of(header.msg_name, header.msg_namelen);
  const Address local = address_of(&info.local.storage, info.local.size);
  const bool is_cut = (header.msg_flags & MSG_TRUNC) != 0;
  Bytes rest(static_cast<const std::byte*>(header.msg_iov->iov_base), message.msg_len);
  const std::size_t segment = info.segment != 0 ? info.segment : rest.size();
  while (unpacked_ < kMaxPackets) {
    const Bytes whole = rest.first(std::min(segment, rest.size()));
    rest = rest.subspan(whole.size());
    packets_[unpacked_++] = {
        .bytes = whole.first(std::min(whole.size(), shape_.packet_size)),
        .peer = peer,
        .local = local,
        .ecn = static_cast<Ecn>(info.ecn),
        .truncated = whole.size() > shape_.packet_size || (is_cut && rest.empty())};
    if (rest.empty()) return;
  }
}

}  // namespace spate
