#include "net/datagram/packet_batch.h"

#include <algorithm>
#include <new>
#include <utility>

#include "net/socket_address.h"

namespace spate {

static_assert(std::is_trivially_destructible_v<Packet>);

// Most batches are short: resets only the messages that the kernel has written to.
long PacketBatch::receive(int fd, const PacketShape& shape) {
  if (shape != shape_) prepare(shape);
  unpacked_ = 0;
  const long received = sys::receive_messages(fd, {messages_, count_});
  if (received <= 0) return received;
  const auto count = static_cast<std::size_t>(received);
  if (shape_.has_info) {
    for (std::size_t i = 0; i < count; ++i) unpack_with_info(i);
  } else {
    unpack(count);
  }
  return received;
}

// Drops packets in place: the rest moves to the front.
void PacketBatch::keep_from(const Address& peer) {
  std::size_t kept = 0;
  for (const Packet packet : packets()) {
    if (packet.peer == peer) new (place(kept++)) Packet(packet);
  }
  if (std::exchange(unpacked_, kept) != kept) shape_ = PacketShape();
}

void PacketBatch::prepare(const PacketShape& shape) {
  shape_ = shape;
  const std::size_t size = shape.joined ? kRoom : shape.packet_size;
  count_ = std::clamp<std::size_t>(kRoom / size, 1, kMessages);
  for (std::size_t i = 0; i < count_; ++i) {
    parts_[i] = {.iov_base = room_ + i * size, .iov_len = size};
    msghdr& header = messages_[i].msg_hdr;
    header = {};
    header.msg_name = AddressRoom::of(peers_[i]);
    header.msg_namelen = AddressRoom::kSize;
    header.msg_iov = &parts_[i];
    header.msg_iovlen = 1;
    locals_[i] = Address();
    if (shape.has_info) {
      make_room_for_info(header, i);
    } else {
      new (place(i)) Packet{.bytes = {room_ + i * size, 0}, .peer = peers_[i], .local = locals_[i]};
    }
  }
}

// With control messages enabled, a unix socket's peer could pass descriptors. Without room for
// control messages the kernel closes them.
void PacketBatch::make_room_for_info(msghdr& header, std::size_t index) {
  header.msg_control = control_[index];
  header.msg_controllen = sizeof(control_[index]);
}

// Fast path for one packet per message without control messages; prepare() has set the constant
// parts. Lengths returned by the kernel are clamped to the buffer.
void PacketBatch::unpack(std::size_t count) {
  const std::size_t max = shape_.packet_size;
  Packet* packet = std::launder(reinterpret_cast<Packet*>(place(0)));
  Address* peer = peers_;
  for (sys::Message& message : std::span(messages_).first(count)) {
    packet->bytes = {packet->bytes.data(), std::min<std::size_t>(message.msg_len, max)};
    packet->truncated = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
    AddressRoom::settle_next(*peer, message.msg_hdr.msg_namelen);
    message.msg_hdr.msg_namelen = AddressRoom::kSize;
    ++packet;
    ++peer;
  }
  unpacked_ = count;
}

void PacketBatch::unpack_with_info(std::size_t index) {
  msghdr& header = messages_[index].msg_hdr;
  const sys::PacketInfo info = sys::packet_info(header);
  AddressRoom::settle(peers_[index], header.msg_namelen);
  locals_[index] = address_of(info.local);
  const bool is_cut = (header.msg_flags & MSG_TRUNC) != 0;
  header.msg_namelen = AddressRoom::kSize;
  make_room_for_info(header, index);
  Bytes rest(static_cast<const std::byte*>(parts_[index].iov_base), messages_[index].msg_len);
  const std::size_t segment = info.segment != 0 ? info.segment : rest.size();
  while (unpacked_ < kMaxPackets) {
    const Bytes whole = rest.first(std::min(segment, rest.size()));
    rest = rest.subspan(whole.size());
    new (place(unpacked_++))
        Packet{.bytes = whole.first(std::min(whole.size(), shape_.packet_size)),
               .peer = peers_[index],
               .local = locals_[index],
               .ecn = static_cast<Ecn>(info.ecn),
               .truncated = whole.size() > shape_.packet_size || (is_cut && rest.empty())};
    if (rest.empty()) return;
  }
}

// A dual-stack socket reports IPv4 peers as mapped addresses, and sends to them with IPv4's control
// messages.
void OutgoingBatch::add_info(std::size_t index, const Outgoing& packet, bool is_ipv6) {
  const Address local = packet.local == nullptr ? Address() : packet.local->unmapped();
  const auto* source = static_cast<const sockaddr*>(local.data());
  const sys::SendInfo info{.local = packet.local == nullptr ? nullptr : source,
                           .ecn = packet.ecn ? static_cast<int>(*packet.ecn) : -1,
                           .segment = is_joined(packet) ? packet.segment : std::uint16_t{0}};
  sys::add_info(messages_[index].msg_hdr, controls_[index], info, is_ipv6);
}

}  // namespace spate
