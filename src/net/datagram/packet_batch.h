// PacketBatch: buffers for the datagrams of one recvmmsg() call.
#pragma once

#include <cstddef>
#include <new>
#include <span>

#include "base/loans.h"
#include "core/loop_local.h"
#include "spate/net/datagram.h"
#include "sys/datagram.h"

namespace spate {

// The format of a socket's packets.
struct PacketShape {
  std::size_t packet_size = 0;  // Longer packets are truncated.
  bool joined = false;          // The kernel may join packets, so each message needs a full-size
                                // buffer.
  bool has_info = false;        // Control messages are enabled.

  bool operator==(const PacketShape&) const = default;
};

class PacketBatch {
 public:
  // Receives into the batch. Returns how many messages arrived, or a negated errno.
  long receive(int fd, const PacketShape& shape);
  // Drops packets of other peers from the last receive().
  void keep_from(const Address& peer);
  // Returns the packets of the last receive(): more than messages if the kernel has joined some.
  std::span<const Packet> packets() const {
    return {std::launder(reinterpret_cast<const Packet*>(packets_)), unpacked_};
  }

 private:
  static constexpr std::size_t kRoom = 64 * 1024;
  static constexpr std::size_t kMessages = 64;
  static constexpr std::size_t kMaxPackets = 128;  // The kernel joins no more in one message.

  void prepare(const PacketShape& shape);
  void make_room_for_info(msghdr& header, std::size_t index);
  void unpack(std::size_t count);
  [[gnu::noinline]] void unpack_with_info(std::size_t index);
  std::byte* place(std::size_t index) { return packets_ + index * sizeof(Packet); }

  sys::Message messages_[kMessages];
  iovec parts_[kMessages];
  Address peers_[kMessages];   // Written by the kernel.
  Address locals_[kMessages];  // Empty without DatagramOptions::local_address.
  alignas(cmsghdr) char control_[kMessages][sys::kControlSpace];
  alignas(Packet) std::byte packets_[kMaxPackets * sizeof(Packet)];
  PacketShape shape_;      // The format for which the messages are prepared.
  std::size_t count_ = 0;  // Messages that fit into room_.
  std::size_t unpacked_ = 0;
  std::byte room_[kRoom];
};

// Buffers for one sendmmsg() call.
class OutgoingBatch {
 public:
  static constexpr std::size_t kMax = 64;

  OutgoingBatch() {
    for (sys::Message& message : messages_) message.msg_hdr.msg_iovlen = 1;
  }
  // `packet` must exist until it is sent.
  void put(std::size_t index, const Outgoing& packet) {
    const Address* peer = packet.peer;
    msghdr& header = messages_[index].msg_hdr;
    header.msg_iov = sys::as_vector(&packet.bytes);
    header.msg_name = peer == nullptr ? nullptr : const_cast<void*>(peer->data());
    header.msg_namelen = peer == nullptr ? 0 : static_cast<socklen_t>(peer->size());
    header.msg_controllen = 0;
  }
  // Adds the source, the ECN and the segment size. `is_ipv6`: the socket's family.
  void add_info(std::size_t index, const Outgoing& packet, bool is_ipv6);
  static bool has_info(const Outgoing& packet) {
    return packet.local != nullptr || packet.ecn || packet.segment != 0;
  }
  // Returns whether it is more than one packet.
  static bool is_joined(const Outgoing& packet) {
    return packet.segment != 0 && packet.bytes.size() > packet.segment;
  }
  // Sends the first `count` packets. Returns how many were sent, or a negated errno.
  long send(int fd, std::size_t count) { return sys::send_messages(fd, {messages_, count}); }

 private:
  sys::Message messages_[kMax]{};
  sys::SendControl controls_[kMax];
};

// The buffers shared by the datagram sockets of a loop: a batch, borrowed by one callback at a
// time, and one for sending.
class PacketRoom final : public LoopLocal {
 public:
  // Returns the loop's PacketRoom, which the first call makes. nullptr when memory runs out.
  static PacketRoom* of(Loop& loop) { return local_of<PacketRoom>(loop); }
  explicit PacketRoom(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  Loans<PacketBatch>::Loan borrow() { return batches_.borrow(); }
  OutgoingBatch& outgoing() { return outgoing_; }

 private:
  bool open() override { return batches_.open(); }

  Loans<PacketBatch> batches_;
  OutgoingBatch outgoing_;
};

}  // namespace spate
