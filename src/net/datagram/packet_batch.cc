#include "net/datagram/packet_batch.h"

#include <algorithm>
#include <new>

#include "net/socket_address.h"

namespace spate {

static_assert(std::is_trivially_destructible_v<Packet>);

// Most batches are short: only what the kernel has written to is made ready again.
long PacketBatch::receive(int fd, const PacketShape& shape) {
  if (shape != shape_) prepare(shape);
  unpacked_ = 0;
  const long received = sys::receive_messages(fd, {messages_, count_});
  for (std::size_t i = 0; static_cast<long>(i) < received; ++i) {
    if (shape_.has_info) {
      unpack_with_info(i);
    } else {
      unpack(i);
    }
    make_ready(i);
  }
  return received;
}

void PacketBatch::prepare(const PacketShape& shape) {
  shape_ = shape;
  const std::size_t size = shape.joined ? kRoom : shape.packet_size;
  count_ = std::clamp<std::size_t>(kRoom / size, 1, kMessages);
  for (std::size_t i = 0; i < count_; ++i) {
    parts_[i] = {.iov_base = room_ + i * size, .iov_len = size};
    messages_[i].msg_hdr = {};
    messages_[i].msg_hdr.msg_name = peers_[i].bytes_;
    messages_[i].msg_hdr.msg_iov = &parts_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    locals_[i] = Address();
    make_ready(i);
  }
}

// What the kernel has written over. A unix socket's peer may send descriptors along: without room
// beside the bytes the kernel closes them, and none gets in here.
void PacketBatch::make_ready(std::size_t index) {
  msghdr& header = messages_[index].msg_hdr;
  header.msg_namelen = Address::kCapacity;
  if (!shape_.has_info) return;
  header.msg_control = control_[index];
  header.msg_controllen = sizeof(control_[index]);
}

// One packet, and nothing beside it. What the kernel says has come is believed only as far as there
// is room.
void PacketBatch::unpack(std::size_t index) {
  const mmsghdr& message = messages_[index];
  const auto* bytes = static_cast<const std::byte*>(parts_[index].iov_base);
  const std::size_t size = std::min<std::size_t>(message.msg_len, shape_.packet_size);
  peers_[index].settle(message.msg_hdr.msg_namelen);
  new (next_place()) Packet{.bytes = {bytes, size},
                            .peer = peers_[index],
                            .local = locals_[index],
                            .truncated = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0};
}

void PacketBatch::unpack_with_info(std::size_t index) {
  mmsghdr& message = messages_[index];
  const sys::PacketInfo info = sys::packet_info(message.msg_hdr);
  peers_[index].settle(message.msg_hdr.msg_namelen);
  locals_[index] = address_of(info.local);
  const bool is_cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
  Bytes rest(static_cast<const std::byte*>(parts_[index].iov_base), message.msg_len);
  const std::size_t segment = info.segment != 0 ? info.segment : rest.size();
  while (unpacked_ < kMaxPackets) {
    const Bytes whole = rest.first(std::min(segment, rest.size()));
    rest = rest.subspan(whole.size());
    new (next_place())
        Packet{.bytes = whole.first(std::min(whole.size(), shape_.packet_size)),
               .peer = peers_[index],
               .local = locals_[index],
               .ecn = static_cast<Ecn>(info.ecn),
               .truncated = whole.size() > shape_.packet_size || (is_cut && rest.empty())};
    if (rest.empty()) return;
  }
}

}  // namespace spate
