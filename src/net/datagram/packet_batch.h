// PacketBatch: where datagrams arrive, as many as one call to the kernel brings, and their bytes.
#pragma once

#include <cstddef>
#include <new>
#include <span>

#include "base/loans.h"
#include "core/loop_local.h"
#include "spate/net/datagram.h"
#include "sys/datagram.h"

namespace spate {

// What a socket's packets look like.
struct PacketShape {
  std::size_t packet_size = 0;  // What is longer is cut.
  bool joined = false;          // The kernel may join packets: each message needs all the room.
  bool has_info = false;        // Something may come beside the bytes.

  bool operator==(const PacketShape&) const = default;
};

class PacketBatch {
 public:
  // Returns how many messages came, or a negated errno.
  long receive(int fd, const PacketShape& shape);
  // What the last receive() has brought: more packets than messages where the kernel has joined
  // some.
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

  mmsghdr messages_[kMessages];
  iovec parts_[kMessages];
  Address peers_[kMessages];   // Where the kernel writes them.
  Address locals_[kMessages];  // None, unless it tells.
  alignas(cmsghdr) char control_[kMessages][sys::kControlSpace];
  alignas(Packet) std::byte packets_[kMaxPackets * sizeof(Packet)];
  PacketShape shape_;      // That the messages are prepared for.
  std::size_t count_ = 0;  // Messages that there is room for.
  std::size_t unpacked_ = 0;
  std::byte room_[kRoom];
};

// Packets on their way out, for one call to the kernel.
class OutgoingBatch {
 public:
  static constexpr std::size_t kMax = 64;

  OutgoingBatch() {
    for (mmsghdr& message : messages_) message.msg_hdr.msg_iovlen = 1;
  }
  // `packet` is to stay until it is sent.
  void put(std::size_t index, const Outgoing& packet) {
    const Address* peer = packet.peer;
    msghdr& header = messages_[index].msg_hdr;
    header.msg_iov = sys::as_vector(&packet.bytes);
    header.msg_name = peer == nullptr ? nullptr : const_cast<void*>(peer->data());
    header.msg_namelen = peer == nullptr ? 0 : static_cast<socklen_t>(peer->size());
  }
  // The first `count`. Returns how many were sent, or a negated errno.
  long send(int fd, std::size_t count) { return sys::send_messages(fd, {messages_, count}); }

 private:
  mmsghdr messages_[kMax]{};
};

// What the datagram sockets of a loop share: a batch, lent to one callback at a time, and one in
// which packets leave.
class PacketRoom final : public LoopLocal {
 public:
  // The loop's; made when it is first asked for. nullptr when memory runs out.
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
