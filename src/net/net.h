// Net: what all connections of one loop share: the memory that bytes arrive in, the gathering of
// what a callback writes, the deadlines, the transports, and the resolver.
//
// It goes with the loop, or with the last Stream that outlives the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/ownership.h"
#include "net/deadlines.h"
#include "net/loans.h"
#include "net/packet_batch.h"
#include "net/slab.h"
#include "net/socket_transport.h"
#include "net/write_gather.h"
#include "spate/loop.h"

namespace spate {

class Resolver;

// As much as one call to the kernel is given room for.
struct Arrivals {
  static constexpr std::size_t kSize = 64 * 1024;
  std::span<std::byte> room() { return bytes; }

  std::byte bytes[kSize];
};

class Net {
 public:
  // The loop's; made when it is first asked for. nullptr when memory runs out.
  static Net* of(Loop& loop);

  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  Loop& loop() const { return *loop_; }
  // Whether the loop is still there; without it, connections are closed.
  bool is_alive() const { return is_alive_; }
  // A loop that is going has still to let go of the nodes of those who go before it.
  bool has_loop() const { return loop_ != nullptr; }
  // Whether this is a child of a fork whose loop is still the parent's: nothing is to be done to
  // connections then but to close our descriptors of them.
  bool is_foreign() const { return has_loop() ? spate::is_foreign(*loop_) : was_foreign_; }

  SocketTransport& sockets() { return sockets_; }
  FileTransport& files() { return files_; }

  // Where bytes arrive, lent for as long as they are looked at.
  Loans<Arrivals>::Loan lend_arrivals() { return arrivals_.borrow(); }
  WriteGather& gather() { return gather_; }
  // Bytes that have been sent and are somebody else's: he is told so in the loop's own time, never
  // inside a call to a Stream.
  void release_later(Buffer&& spent);
  // Opened for the first datagram socket.
  Loans<PacketBatch>& packets() { return packets_; }
  // Made when it is first asked for. nullptr when memory runs out.
  Resolver* resolver();

  // Another one each time.
  std::uint64_t next_number() { return ++last_number_; }

  Slab<Connection>& slab() { return slab_; }
  // Every connection enters and leaves.
  void enter() { ++connections_; }
  void leave() {
    if (--connections_ == 0 && !is_alive()) delete this;
  }

  // Has the connection looked at by `when`, in loop time. False when memory runs out.
  bool note_deadline(Connection& connection, std::int64_t when);
  void forget_deadline(Connection& connection) { deadlines_.forget(connection); }

 private:
  class Tenancy;

  explicit Net(Loop& loop);
  ~Net();
  bool open();
  bool arm();
  void look_at_due();
  void release_spent();
  void stop_gathering();
  void loop_goes();

  Loop* loop_;
  bool is_alive_ = true;
  bool was_foreign_ = false;  // When the loop went.
  Slab<Connection> slab_;
  SocketTransport sockets_{*this};
  FileTransport files_{*this};
  Loans<Arrivals> arrivals_;
  WriteGather gather_;
  Buffer spent_;
  Node releasing_{};
  Loans<PacketBatch> packets_;
  Deadlines deadlines_;
  std::unique_ptr<Resolver> resolver_;
  TimerNode timer_{};  // Direct: it only queues `due_`, in which connections are looked at.
  Node due_{};
  std::size_t connections_ = 0;
  std::uint64_t last_number_ = 0;
};

// ---- Connection, what every message needs

inline Net& Connection::net() const { return transport_->net(); }

inline bool Connection::is_open() const { return !has(kClosed) && net().is_alive(); }

inline void Connection::touch() {
  last_active_ticks_ = static_cast<std::uint32_t>(net().loop().now().count() >> kTickBits);
}

inline void Connection::begin_call(Bytes arrived) {
  set(kInCallback);
  net().gather().begin(this, arrived);
}

inline bool Connection::end_call() {
  WriteGather& gather = net().gather();
  if (!gather.empty()) send_gathered();
  gather.end();
  set(kInCallback, false);
  constexpr std::uint32_t kOutOfTheOrdinary =
      kNested | kAbandoned | kClosed | kEnding | kBroken | kPeerEnded | kDiscarding | kOffer;
  return has(kOutOfTheOrdinary) || !net().is_alive() ? after_call() : true;
}

}  // namespace spate
